# tactus_module(NAME [DIR dir] [COLD] [DEPS targets...] [VENDOR targets...])
#
# One library `tactus_NAME` from every .cc below DIR (default: the current folder). Beside the code lie
#   *_test.cc   -> one executable tactus_NAME_test, each TEST known to ctest
#   *_bench.cc  -> one executable tactus_NAME_bench (Google Benchmark)
#   *_fuzz.cc   -> one libFuzzer executable each, when TACTUS_FUZZ is on
# EXCLUDE names folders below DIR that are modules of their own.
# DEPS are the modules that this one may include: they are its arrows, and tools/layers checks them.
# VENDOR are third-party targets; they stay private to the module.
# COLD: the module computes little in tests, so sanitizers check it unoptimised (tactus_quick_to_sanitize).

include(GoogleTest)

# Whoever builds all from nothing waits for headers more than for code, so the files of a target are
# compiled several at a time. After a change one file is quicker than sixteen.
option(TACTUS_UNITY "Compile a target's files several at a time: quick from nothing, slow to work with" OFF)

# Every module adds to these: build the one to have what `ctest` or `./run fuzz` runs.
add_custom_target(tactus_tests)
add_custom_target(tactus_fuzzers)

# With TACTUS_UNITY, compiles the target's files together. So many at a time that most targets are one
# file, and none takes so long that at the end all wait for it.
function(tactus_together TARGET)
  if(TACTUS_UNITY)
    set_target_properties(${TARGET} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
    # Files that are included look like headers to it, in which it would be right.
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
      target_compile_options(${TARGET} PRIVATE -Wno-subobject-linkage)
    endif()
  endif()
endfunction()

# Under sanitizers, compiles the target without optimisation, which saves a third to three fifths of the
# compiler's time. The same is checked, but it runs slower: for tests, and for code that computes little in them.
function(tactus_quick_to_sanitize TARGET)
  if(TACTUS_SANITIZE)
    target_compile_options(${TARGET} PRIVATE -O0)
  endif()
endfunction()

# Defines TACTUS_SOURCE_DIR for those of the target's files that use it, and for no others: the
# compiler cache can then serve the rest to every checkout, whatever its path. Files that are compiled
# together are given the same definitions, so all of the target's.
function(tactus_tell_source_dir TARGET)
  get_target_property(sources ${TARGET} SOURCES)
  foreach(source ${sources})
    cmake_path(ABSOLUTE_PATH source)
    file(STRINGS ${source} uses REGEX TACTUS_SOURCE_DIR LIMIT_COUNT 1)
    if(uses AND TACTUS_UNITY)
      target_compile_definitions(${TARGET} PRIVATE TACTUS_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
      return()
    elseif(uses)
      set_property(SOURCE ${source} APPEND PROPERTY COMPILE_DEFINITIONS
                   TACTUS_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    endif()
  endforeach()
endfunction()

function(tactus_module NAME)
  cmake_parse_arguments(M "COLD" "DIR" "DEPS;VENDOR;TEST_DEPS;EXCLUDE" ${ARGN})
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

  set(scope PUBLIC)
  if(sources)
    add_library(tactus_${NAME} STATIC ${sources})
    target_link_libraries(tactus_${NAME} PRIVATE ${M_VENDOR} Threads::Threads)
    tactus_together(tactus_${NAME})
    if(TACTUS_FUZZ)
      # What libFuzzer steers by. Tests and commands do without: it is a tenth of compiling them.
      target_compile_options(tactus_${NAME} PRIVATE -fsanitize=fuzzer-no-link)
    endif()
    if(M_COLD)
      tactus_quick_to_sanitize(tactus_${NAME})
    endif()
  else()
    add_library(tactus_${NAME} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(tactus_${NAME} ${scope} ${PROJECT_SOURCE_DIR}/src)
  list(TRANSFORM M_DEPS PREPEND tactus_)
  target_link_libraries(tactus_${NAME} ${scope} ${M_DEPS})

  list(TRANSFORM M_TEST_DEPS PREPEND tactus_)
  if(tests)
    add_executable(tactus_${NAME}_test ${tests})
    target_link_libraries(tactus_${NAME}_test PRIVATE tactus_${NAME} ${M_TEST_DEPS} ${M_VENDOR}
                          GTest::gmock GTest::gtest_main Threads::Threads)
    tactus_tell_source_dir(tactus_${NAME}_test)
    tactus_together(tactus_${NAME}_test)
    tactus_quick_to_sanitize(tactus_${NAME}_test)
    if(NOT TACTUS_SANITIZE AND CMAKE_BUILD_TYPE STREQUAL RelWithDebInfo)
      # Some sixth less to compile; GoogleTest names the line of a failure itself.
      target_compile_options(tactus_${NAME}_test PRIVATE -O1 -g0)
    endif()
    add_dependencies(tactus_tests tactus_${NAME}_test)
    gtest_discover_tests(tactus_${NAME}_test DISCOVERY_MODE PRE_TEST
                         PROPERTIES LABELS ${NAME} TIMEOUT 300)
  endif()
  if(benches AND NOT TACTUS_FUZZ)
    add_executable(tactus_${NAME}_bench ${benches})
    target_link_libraries(tactus_${NAME}_bench PRIVATE tactus_${NAME} ${M_TEST_DEPS} ${M_VENDOR}
                          benchmark::benchmark benchmark::benchmark_main Threads::Threads)
    tactus_tell_source_dir(tactus_${NAME}_bench)
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
