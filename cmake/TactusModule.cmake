# tactus_module(NAME [DIR dir] [HOT] [FUZZED] [DEPS targets...] [VENDOR targets...])
#
# One library `tactus_NAME` from every .cc below DIR (default: the current folder). Beside the code lie
#   *_test.cc   -> one executable tactus_NAME_test, each TEST known to ctest. Those of what only optimised code shows
#                  (*allocation_test.cc, *_twin_test.cc) are in tactus_NAME_optimised_test, which sanitizers do without.
#                  *_claims_test.cc (what numbers claim over many random cases) is there too: all cases in the
#                  optimised test, a fifth of them in tactus_NAME_test under sanitizers (base/cases_for_test.h)
#   *_bench.cc  -> one executable tactus_NAME_bench (Google Benchmark)
#   *_fuzz.cc   -> one libFuzzer executable each, when TACTUS_FUZZ is on
#   *_for_test.cc -> part of no module: tests name it
# EXCLUDE names folders below DIR that are modules of their own.
# DEPS are the modules that this one may include: they are its arrows, and tools/layers checks them.
# VENDOR are third-party targets; they stay private to the module.
# FUZZED: libFuzzer steers by its branches too, though its fuzz targets are in other modules.
# HOT: tests compute much in the module, so it is optimised under sanitizers too (tactus_quick_to_sanitize).

include(GoogleTest)

# Whoever builds all from nothing waits for headers more than for code, so the files of a target are
# compiled several at a time. After a change one file is quicker than sixteen.
option(TACTUS_UNITY "Compile a target's files several at a time: quick from nothing, slow to work with" OFF)

# Every module adds to these. tactus_tests: unit tests. tactus_program_tests: those that need an optimised library.
# tactus_fuzzers: what `./run fuzz` runs.
add_custom_target(tactus_tests)
add_custom_target(tactus_program_tests)
add_custom_target(tactus_fuzzers)

# tactus_together(TARGET [SIZE]): with TACTUS_UNITY, compiles the target's files together, SIZE (16) at a time: so many
# that most targets are one file, and so few that at the end nobody waits for one of them. A source that has options of
# its own or SKIP_UNITY_BUILD_INCLUSION stays alone. CMake's UNITY_BUILD does the same with absolute paths, which the
# compiler cache cannot serve to another checkout.
function(tactus_together TARGET)
  if(TACTUS_UNITY)
    set(size ${ARGN})
    if(NOT size)
      set(size 16)
    endif()
    # At the end of the folder: then all sources are added, and their properties set.
    cmake_language(EVAL CODE "cmake_language(DEFER CALL tactus_write_unity ${TARGET} ${size})")
  endif()
endfunction()

function(tactus_write_unity TARGET SIZE)
  get_target_property(sources ${TARGET} SOURCES)
  set(folder ${PROJECT_BINARY_DIR}/unity)
  set(batch 0)
  set(left ${SIZE})
  set(includes "")
  foreach(source ${sources})
    cmake_path(ABSOLUTE_PATH source)
    get_source_file_property(alone ${source} SKIP_UNITY_BUILD_INCLUSION)
    get_source_file_property(options ${source} COMPILE_OPTIONS)
    if(NOT source MATCHES "\\.cc$" OR source MATCHES "\\$<" OR alone OR options)
      continue()
    endif()
    set_source_files_properties(${source} PROPERTIES HEADER_FILE_ONLY ON)  # no object of its own
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${folder})
    string(APPEND includes "#include \"${source}\"\n")
    math(EXPR left "${left} - 1")
    if(left EQUAL 0)
      tactus_write_unity_file(${TARGET} ${folder}/${TARGET}_${batch}.cc "${includes}")
      math(EXPR batch "${batch} + 1")
      set(left ${SIZE})
      set(includes "")
    endif()
  endforeach()
  if(includes)
    tactus_write_unity_file(${TARGET} ${folder}/${TARGET}_${batch}.cc "${includes}")
  endif()
  # Messages name files from the source folder on.
  set(top ${PROJECT_SOURCE_DIR})
  cmake_path(RELATIVE_PATH top BASE_DIRECTORY ${folder})
  target_compile_options(${TARGET} PRIVATE -fmacro-prefix-map=${folder}/${top}/=)
  # Files that are included look like headers to it, in which it would be right.
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(${TARGET} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()

function(tactus_write_unity_file TARGET FILE INCLUDES)
  file(CONFIGURE OUTPUT ${FILE} CONTENT "// Written by cmake/TactusModule.cmake.\n@INCLUDES@" @ONLY)
  target_sources(${TARGET} PRIVATE ${FILE})
endfunction()

# Under sanitizers, compiles the target without optimisation, which saves a third to three fifths of the
# compiler's time. The same is checked, but it runs slower: for tests, and for code that computes little in them.
function(tactus_quick_to_sanitize TARGET)
  if(TACTUS_SANITIZE)
    target_compile_options(${TARGET} PRIVATE -O0)
  endif()
endfunction()

# tactus_source_path(TARGET): the target may use base/source_path_for_test.h. The path is in one small file.
function(tactus_source_path TARGET)
  if(NOT TARGET tactus_source_path)
    set(file ${PROJECT_BINARY_DIR}/generated/source_path.cc)
    file(CONFIGURE OUTPUT ${file} @ONLY CONTENT "// Written by cmake/TactusModule.cmake.
namespace tactus {
extern const char* const kSourceDir;
const char* const kSourceDir = \"@PROJECT_SOURCE_DIR@\";
}  // namespace tactus
")
    add_library(tactus_source_path STATIC ${file})
  endif()
  target_link_libraries(${TARGET} PRIVATE tactus_source_path)
endfunction()

# tactus_test(NAME GROUP sources... DEPS targets... [HOT] [LABEL label]): the executable tactus_NAME_test, part of the
# target tactus_GROUP, each TEST known to ctest with the label, which is NAME when none is given.
function(tactus_test NAME GROUP)
  cmake_parse_arguments(T "HOT" "LABEL" "DEPS" ${ARGN})
  if(NOT T_LABEL)
    set(T_LABEL ${NAME})
  endif()
  set(target tactus_${NAME}_test)
  add_executable(${target} ${T_UNPARSED_ARGUMENTS})
  target_link_libraries(${target} PRIVATE ${T_DEPS} GTest::gmock GTest::gtest_main Threads::Threads)
  tactus_source_path(${target})
  tactus_together(${target})
  if(NOT T_HOT)
    tactus_quick_to_sanitize(${target})
  endif()
  if(NOT TACTUS_SANITIZE AND CMAKE_BUILD_TYPE STREQUAL RelWithDebInfo)
    # Some sixth less to compile; GoogleTest names the line of a failure itself.
    target_compile_options(${target} PRIVATE -O1 -g0)
  endif()
  add_dependencies(tactus_${GROUP} ${target})
  gtest_discover_tests(${target} DISCOVERY_MODE PRE_TEST
                       PROPERTIES LABELS ${T_LABEL} TIMEOUT 600)  # a build may run beside it
endfunction()

function(tactus_module NAME)
  cmake_parse_arguments(M "HOT;FUZZED" "DIR" "DEPS;VENDOR;TEST_DEPS;EXCLUDE" ${ARGN})
  set(dir ${CMAKE_CURRENT_SOURCE_DIR}/${M_DIR})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${dir}/*.cc)
  file(GLOB_RECURSE tests CONFIGURE_DEPENDS ${dir}/*_test.cc)
  file(GLOB_RECURSE benches CONFIGURE_DEPENDS ${dir}/*_bench.cc)
  file(GLOB_RECURSE fuzzers CONFIGURE_DEPENDS ${dir}/*_fuzz.cc)
  foreach(excluded ${M_EXCLUDE})
    foreach(files sources tests benches fuzzers)
      list(FILTER ${files} EXCLUDE REGEX "^${dir}/${excluded}/")
    endforeach()
  endforeach()
  list(REMOVE_ITEM sources ${tests} ${benches} ${fuzzers})
  list(FILTER tests EXCLUDE REGEX "_for_test\\.cc$")

  set(scope PUBLIC)
  if(sources)
    add_library(tactus_${NAME} STATIC ${sources})
    target_link_libraries(tactus_${NAME} PRIVATE ${M_VENDOR} Threads::Threads)
    tactus_together(tactus_${NAME})
    if(TACTUS_FUZZ AND (fuzzers OR M_FUZZED))
      # What libFuzzer steers by. The other modules do without: it is up to a third of compiling them.
      target_compile_options(tactus_${NAME} PRIVATE -fsanitize=fuzzer-no-link)
    endif()
    if(NOT M_HOT)
      tactus_quick_to_sanitize(tactus_${NAME})
    endif()
  else()
    add_library(tactus_${NAME} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(tactus_${NAME} ${scope} ${PROJECT_SOURCE_DIR}/src)
  list(TRANSFORM M_DEPS PREPEND tactus_)
  target_link_libraries(tactus_${NAME} ${scope} ${M_DEPS})

  if(NOT TACTUS_TESTS)
    return()
  endif()
  list(TRANSFORM M_TEST_DEPS PREPEND tactus_)
  set(optimised ${tests})
  list(FILTER optimised INCLUDE REGEX "(allocation|_twin|_claims)_test\\.cc$")
  if(TACTUS_SANITIZE)
    list(FILTER tests EXCLUDE REGEX "(allocation|_twin)_test\\.cc$")
  else()
    list(REMOVE_ITEM tests ${optimised} "")
  endif()
  if(tests)
    if(M_HOT)
      # Of an inline function that is in both, the linker may keep the test's copy.
      list(PREPEND tests HOT)
    endif()
    tactus_test(${NAME} tests ${tests} DEPS tactus_${NAME} ${M_TEST_DEPS} ${M_VENDOR})
  endif()
  if(optimised AND NOT TACTUS_SANITIZE)
    tactus_test(${NAME}_optimised program_tests ${optimised} DEPS tactus_${NAME} ${M_TEST_DEPS} ${M_VENDOR}
                LABEL program)
  endif()
  if(benches AND NOT TACTUS_FUZZ)
    add_executable(tactus_${NAME}_bench ${benches})
    target_link_libraries(tactus_${NAME}_bench PRIVATE tactus_${NAME} ${M_TEST_DEPS} ${M_VENDOR}
                          benchmark::benchmark benchmark::benchmark_main Threads::Threads)
    tactus_source_path(tactus_${NAME}_bench)
  endif()
  if(TACTUS_FUZZ)
    foreach(source ${fuzzers})
      get_filename_component(stem ${source} NAME_WE)
      add_executable(${stem} ${source})
      add_dependencies(tactus_fuzzers ${stem})
      set_target_properties(${stem} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzzers)
      target_compile_options(${stem} PRIVATE -fsanitize=fuzzer-no-link)
      target_link_libraries(${stem} PRIVATE tactus_${NAME} ${M_VENDOR} Threads::Threads -fsanitize=fuzzer)
    endforeach()
  endif()
endfunction()
