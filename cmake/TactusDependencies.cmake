# Every third-party package the build uses. Which folder may include which is tools/layers' business.
find_package(nlohmann_json REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(SQLite3 REQUIRED)

# Tests and benchmarks. Without these two the program builds.
find_package(GTest QUIET)
find_package(benchmark QUIET)
if(GTest_FOUND AND benchmark_FOUND)
  set(TACTUS_TESTS ON)
else()
  set(TACTUS_TESTS OFF)
  message(STATUS "GoogleTest or Google Benchmark was not found: no tests and no benchmarks (./run build all)")
endif()

# A library of Debian's PACKAGE without a CMake file of its own: target NAME, which has HEADER.
function(tactus_plain_library NAME HEADER PACKAGE)
  find_path(TACTUS_${NAME}_INCLUDE ${HEADER})
  find_library(TACTUS_${NAME}_LIBRARY ${NAME})
  if(NOT TACTUS_${NAME}_INCLUDE OR NOT TACTUS_${NAME}_LIBRARY)
    message(FATAL_ERROR "lib${NAME} was not found. Run ./run build, or install ${PACKAGE}.")
  endif()
  add_library(${NAME} INTERFACE)
  target_include_directories(${NAME} SYSTEM INTERFACE ${TACTUS_${NAME}_INCLUDE})
  target_link_libraries(${NAME} INTERFACE ${TACTUS_${NAME}_LIBRARY})
endfunction()

# engines/op decodes JPEGs with it.
tactus_plain_library(turbojpeg turbojpeg.h libturbojpeg0-dev)

if(TACTUS_SERVER)
  find_package(Boost 1.81 REQUIRED)
  find_package(OpenSSL 3.0 REQUIRED)
  find_package(simdjson REQUIRED)
  find_package(prometheus-cpp REQUIRED)
  find_package(Protobuf REQUIRED)
  find_package(gRPC CONFIG REQUIRED)
  tactus_plain_library(nghttp2 nghttp2/nghttp2.h libnghttp2-dev)
endif()

# Video sources of streams (src/stream/video). Without it all else builds.
option(TACTUS_VIDEO "Read video for streams, where libav is installed" ON)
if(TACTUS_SERVER AND TACTUS_VIDEO)
  find_package(PkgConfig)
  if(PKG_CONFIG_FOUND)
    pkg_check_modules(TACTUS_LIBAV IMPORTED_TARGET libavformat libavcodec libavutil libswscale)
  endif()
  if(TACTUS_LIBAV_FOUND)
    add_library(libav INTERFACE)
    target_link_libraries(libav INTERFACE PkgConfig::TACTUS_LIBAV)
  else()
    message(STATUS "libav was not found: tactus stream cannot read video (./run build video)")
  endif()
endif()

# The knowledge base in PostgreSQL (src/knowledge/postgres). Without it all else builds.
option(TACTUS_POSTGRES "Keep the knowledge base in PostgreSQL, where libpq is installed" ON)
if(TACTUS_SERVER AND TACTUS_POSTGRES)
  find_package(PkgConfig)
  if(PKG_CONFIG_FOUND)
    pkg_check_modules(TACTUS_LIBPQ IMPORTED_TARGET libpq)
  endif()
  if(TACTUS_LIBPQ_FOUND)
    add_library(libpq INTERFACE)
    target_link_libraries(libpq INTERFACE PkgConfig::TACTUS_LIBPQ)
  else()
    message(STATUS "libpq was not found: the knowledge base is SQLite's (./run build postgres)")
  endif()
endif()

# TACTUS_CBC: the libraries of bench/cbc.
if(TACTUS_WITH_CBC)
  find_path(TACTUS_CBC_INCLUDE coin/Cbc_C_Interface.h)
  find_library(TACTUS_CBC_SOLVER CbcSolver)
  find_library(TACTUS_CBC_LIBRARY Cbc)
  if(NOT TACTUS_CBC_INCLUDE OR NOT TACTUS_CBC_SOLVER OR NOT TACTUS_CBC_LIBRARY)
    message(FATAL_ERROR "TACTUS_WITH_CBC: COIN CBC was not found. Install coinor-libcbc-dev, or say "
                        "-DTACTUS_WITH_CBC=OFF.")
  endif()
  set(TACTUS_CBC ${TACTUS_CBC_SOLVER} ${TACTUS_CBC_LIBRARY})
endif()

# Its headers are in the tree; the library is opened at run time (engines/onnxruntime/library.h).
option(TACTUS_ONNXRUNTIME "Build the engine that runs ONNX graphs" ON)
if(TACTUS_ONNXRUNTIME)
  add_library(onnxruntime_headers INTERFACE)
  target_include_directories(onnxruntime_headers SYSTEM INTERFACE
                             ${PROJECT_SOURCE_DIR}/third_party/onnxruntime/include)
endif()

# The headers of NVIDIA's driver and of its management library only: both are opened at run time
# (engines/cuda/driver.h, nvml.h).
option(TACTUS_CUDA "Build the engine for NVIDIA devices (needs cuda.h and nvml.h)" ON)
if(TACTUS_CUDA)
  find_path(TACTUS_CUDA_INCLUDE cuda.h
            HINTS $ENV{CUDA_HOME}/include ${PROJECT_SOURCE_DIR}/.cache/cuda/include /usr/local/cuda/include)
  find_path(TACTUS_NVML_INCLUDE nvml.h
            HINTS $ENV{CUDA_HOME}/include ${PROJECT_SOURCE_DIR}/.cache/cuda/include /usr/local/cuda/include)
  if(TACTUS_CUDA_INCLUDE AND TACTUS_NVML_INCLUDE)
    message(STATUS "CUDA headers: ${TACTUS_CUDA_INCLUDE}")
    add_library(cuda_headers INTERFACE)
    target_include_directories(cuda_headers SYSTEM INTERFACE ${TACTUS_CUDA_INCLUDE} ${TACTUS_NVML_INCLUDE})
  else()
    message(STATUS "cuda.h or nvml.h was not found, so this build knows no NVIDIA device (./run setup gpu)")
  endif()
endif()

# PyTorch's libraries, to run AOTInductor packages on NVIDIA devices (engines/aoti). TORCH_ROOT is the folder
# of the Python package torch, of 2.6 or later: `python3 -c 'import torch; print(torch.__path__[0])'`. Its own
# CMake package is not used: it wants a CUDA toolkit on the machine that compiles.
set(TORCH_ROOT "" CACHE PATH "The folder of the Python package torch; empty: without engines/aoti")
if(NOT TORCH_ROOT AND NOT "$ENV{TORCH_ROOT}" STREQUAL "")
  set(TORCH_ROOT "$ENV{TORCH_ROOT}" CACHE PATH "The folder of the Python package torch" FORCE)
endif()
if(TORCH_ROOT)
  find_path(TACTUS_TORCH_INCLUDE torch/csrc/inductor/aoti_package/model_package_loader.h
            HINTS ${TORCH_ROOT}/include REQUIRED NO_DEFAULT_PATH)
  find_library(TACTUS_TORCH_CPU torch_cpu HINTS ${TORCH_ROOT}/lib REQUIRED NO_DEFAULT_PATH)
  find_library(TACTUS_TORCH_C10 c10 HINTS ${TORCH_ROOT}/lib REQUIRED NO_DEFAULT_PATH)
  message(STATUS "PyTorch: ${TORCH_ROOT}")
  add_library(torch_libraries INTERFACE)
  target_include_directories(torch_libraries SYSTEM INTERFACE ${TACTUS_TORCH_INCLUDE}
                             ${TACTUS_TORCH_INCLUDE}/torch/csrc/api/include)
  target_link_libraries(torch_libraries INTERFACE ${TACTUS_TORCH_CPU} ${TACTUS_TORCH_C10})
  # Where it is a PyTorch for CUDA its libraries need NVIDIA's, which may be on another machine only.
  target_link_options(torch_libraries INTERFACE -Wl,--allow-shlib-undefined)
endif()
