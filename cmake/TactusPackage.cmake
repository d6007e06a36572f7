# The Debian package (`./run package`, tools/deploy/package.sh): what it holds, and what CPack writes
# about it. Destinations are absolute paths without their first slash: CPack's prefix is /.

# CPack would build all tests first; package.sh builds what is installed.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
set(deploy ${PROJECT_SOURCE_DIR}/deploy)
set(documentation usr/share/doc/tactus)

# Manual pages and completions, made of what the program says of itself whenever it is a new one; and the program with
# its libraries, so that one package is for Debian 12 and 13.
find_package(Python3 3.11 COMPONENTS Interpreter)
set(pages ${PROJECT_SOURCE_DIR}/tools/deploy/pages.py)
set(binaries ${PROJECT_SOURCE_DIR}/tools/deploy/binaries.py)
set(printed ${PROJECT_BINARY_DIR}/generated/package)
set(bundle ${PROJECT_BINARY_DIR}/generated/bundle)
add_custom_command(
  OUTPUT ${printed}/printed
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${printed}
  COMMAND ${Python3_EXECUTABLE} -B ${pages} $<TARGET_FILE:tactus> ${printed}
  COMMAND ${Python3_EXECUTABLE} -B ${binaries} $<TARGET_FILE:tactus> ${bundle}
  COMMAND ${CMAKE_COMMAND} -E touch ${printed}/printed
  DEPENDS tactus ${pages} ${binaries} COMMENT "manual pages and completions" VERBATIM)
add_custom_target(tactus_package_files DEPENDS ${printed}/printed)

install(DIRECTORY ${bundle}/bin DESTINATION usr USE_SOURCE_PERMISSIONS)
install(DIRECTORY ${bundle}/lib/ DESTINATION usr/lib/tactus USE_SOURCE_PERMISSIONS)
install(DIRECTORY ${bundle}/licences DESTINATION ${documentation})
install(DIRECTORY ${printed}/man/ DESTINATION usr/share/man/man1)
install(FILES ${printed}/tactus.bash DESTINATION usr/share/bash-completion/completions RENAME tactus)
install(FILES ${printed}/_tactus DESTINATION usr/share/zsh/vendor-completions)
install(FILES ${printed}/tactus.fish DESTINATION usr/share/fish/vendor_completions.d)
install(DIRECTORY ${deploy}/systemd/ DESTINATION lib/systemd/system)
install(DIRECTORY ${deploy}/defaults/ DESTINATION etc/tactus)
install(FILES README.md THIRD_PARTY.md ${deploy}/debian/copyright DESTINATION ${documentation})
install(DIRECTORY docs DESTINATION ${documentation} FILES_MATCHING PATTERN "*.md"
        PATTERN images EXCLUDE PATTERN results EXCLUDE)

# Debian has no ONNX Runtime of this API. Beside the program's prefix is where it looks
# (src/engines/onnxruntime/library.cc).
find_file(TACTUS_ONNXRUNTIME_SHARED libonnxruntime.so.1 NO_DEFAULT_PATH
          PATHS $ENV{ONNXRUNTIME_ROOT}/lib ${PROJECT_SOURCE_DIR}/.cache/onnxruntime/lib)
find_file(TACTUS_ONNXRUNTIME_LICENSE LICENSE NO_DEFAULT_PATH
          PATHS $ENV{ONNXRUNTIME_ROOT} ${PROJECT_SOURCE_DIR}/.cache/onnxruntime)
if(TACTUS_ONNXRUNTIME_SHARED AND TACTUS_ONNXRUNTIME_LICENSE)
  get_filename_component(library ${TACTUS_ONNXRUNTIME_SHARED} REALPATH)
  install(PROGRAMS ${library} DESTINATION usr/lib/tactus RENAME libonnxruntime.so.1)
  install(FILES ${TACTUS_ONNXRUNTIME_LICENSE} DESTINATION ${documentation}
          RENAME onnxruntime-LICENSE)
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /)
set(CPACK_PACKAGE_NAME tactus)
set(CPACK_PACKAGE_VENDOR "the authors of Tactus")
set(CPACK_PACKAGE_CONTACT "the authors of Tactus <tactus@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "inference server that meets deadlines")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
    "Tactus serves several models with latency SLOs on one machine or on several.
It decides when a batch starts, how large it is and at which early exit it
stops, and speaks KServe v2 over HTTP and gRPC. ONNX Runtime is included.")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
# What binaries.py leaves to the machine. Trixie's libssl3t64 provides libssl3.
set(CPACK_DEBIAN_PACKAGE_DEPENDS
    "adduser, libc6 (>= 2.36), libgcc-s1, libpq5, libssl3, libstdc++6 (>= 12), zlib1g")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
    ${deploy}/debian/postinst ${deploy}/debian/prerm ${deploy}/debian/postrm
    ${deploy}/debian/conffiles)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_SOURCE_DIR}/out/package)
include(CPack)
