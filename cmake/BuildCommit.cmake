cmake_minimum_required(VERSION 3.25)
# Run at build time: writes OUTPUT with the commit of SOURCE_DIR, and touches it only when that
# changes, so that a build of an unchanged tree compiles and links nothing.
execute_process(COMMAND git rev-parse --short=12 HEAD
                WORKING_DIRECTORY ${SOURCE_DIR}
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE
                ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(commit "unknown")
else()
  # Figures of a tree with uncommitted changes must not pass for those of its commit.
  execute_process(COMMAND git diff --quiet HEAD -- src apps cmake CMakeLists.txt
                  WORKING_DIRECTORY ${SOURCE_DIR} ERROR_QUIET RESULT_VARIABLE dirty)
  if(dirty)
    string(APPEND commit "-dirty")
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT
     "// Written by cmake/BuildCommit.cmake.\nnamespace tactus {\nextern const char kBuildCommit[];\nconst char kBuildCommit[] = \"@commit@\";\n}  // namespace tactus\n")
