# Compiler flags, sanitizers, and the fast linker and compiler cache where they are installed.

add_compile_options(-Wall -Wextra -Wpedantic -Werror=return-type -Wno-missing-field-initializers)
# A simulated decision and a served one must be the same number: no fused multiply-add.
add_compile_options(-ffp-contract=off)

find_program(TACTUS_CCACHE ccache)
if(TACTUS_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TACTUS_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${TACTUS_CCACHE})
endif()

find_program(TACTUS_MOLD mold)
if(TACTUS_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

if(TACTUS_SANITIZE)
  add_compile_options(-fsanitize=${TACTUS_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${TACTUS_SANITIZE})
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
  # clang 16 takes std::expected from libstdc++ only when told that its concepts are complete.
  add_compile_options(-D__cpp_concepts=202002L -Wno-builtin-macro-redefined -Wno-macro-redefined)
endif()

find_package(Threads REQUIRED)
