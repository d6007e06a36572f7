# The commit goes into a library of one small file: a new commit compiles that file and relinks.
set(commit_source ${PROJECT_BINARY_DIR}/generated/build_commit.cc)
add_custom_target(tactus_write_commit
  COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${PROJECT_SOURCE_DIR} -DOUTPUT=${commit_source}
          -P ${PROJECT_SOURCE_DIR}/cmake/BuildCommit.cmake
  BYPRODUCTS ${commit_source}
  COMMENT "")
add_library(tactus_commit STATIC ${commit_source})
add_dependencies(tactus_commit tactus_write_commit)
target_link_libraries(tactus_metrics PUBLIC tactus_commit)
