# The libraries that the build needs, at the oldest versions it is tested with (those of Debian 12), and a message that
# names the Debian package when one is missing. All but threads and zstd are used as headers only, so an installed tilevm
# needs none of the others.

function(tilevm_need found what package)
  if(NOT ${found})
    message(FATAL_ERROR "tilevm needs ${what}, which was not found.\n"
                        "  Debian, Ubuntu:  apt-get install ${package}\n"
                        "  everything that the build needs:  tools/setup.sh build")
  endif()
endfunction()

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

# An interface target over the include directories of `target`, so that no link dependency reaches the installed package.
function(tilevm_headers name target)
  add_library(${name} INTERFACE)
  get_target_property(dirs ${target} INTERFACE_INCLUDE_DIRECTORIES)
  if(dirs)
    target_include_directories(${name} SYSTEM INTERFACE ${dirs})
  endif()
endfunction()

find_package(nlohmann_json 3.11 CONFIG QUIET)
tilevm_need(nlohmann_json_FOUND "nlohmann-json 3.11 or newer" nlohmann-json3-dev)
tilevm_headers(tilevm_json nlohmann_json::nlohmann_json)

# xxHash ships no CMake package. XXH_INLINE_ALL makes it a header.
find_path(TILEVM_XXHASH_DIR xxhash.h DOC "Directory of xxhash.h")
if(TILEVM_XXHASH_DIR)
  file(STRINGS ${TILEVM_XXHASH_DIR}/xxhash.h lines REGEX "#define XXH_VERSION_(MAJOR|MINOR|RELEASE) +[0-9]+")
  string(REGEX REPLACE "[^;0-9]+" "" numbers "${lines}")
  string(REPLACE ";" "." TILEVM_XXHASH_VERSION "${numbers}")
endif()
set(TILEVM_XXHASH_FOUND OFF)
if(TILEVM_XXHASH_VERSION VERSION_GREATER_EQUAL 0.8.1)
  set(TILEVM_XXHASH_FOUND ON)
endif()
tilevm_need(TILEVM_XXHASH_FOUND "xxHash 0.8.1 or newer" libxxhash-dev)
add_library(tilevm_xxhash INTERFACE)
target_include_directories(tilevm_xxhash SYSTEM INTERFACE ${TILEVM_XXHASH_DIR})
target_compile_definitions(tilevm_xxhash INTERFACE XXH_INLINE_ALL)

# zstd, for bundles: the one library besides threads that is linked. The static one is preferred, so that the programs run where
# it is not installed.
find_path(TILEVM_ZSTD_DIR zstd.h DOC "Directory of zstd.h")
find_library(TILEVM_ZSTD_LIBRARY NAMES libzstd.a zstd DOC "The zstd library")
set(TILEVM_ZSTD_FOUND OFF)
if(TILEVM_ZSTD_DIR AND TILEVM_ZSTD_LIBRARY)
  file(STRINGS ${TILEVM_ZSTD_DIR}/zstd.h lines REGEX "#define ZSTD_VERSION_(MAJOR|MINOR|RELEASE) +[0-9]+")
  string(REGEX REPLACE "[^;0-9]+" "" numbers "${lines}")
  string(REPLACE ";" "." TILEVM_ZSTD_VERSION "${numbers}")
  if(TILEVM_ZSTD_VERSION VERSION_GREATER_EQUAL 1.5.4)
    set(TILEVM_ZSTD_FOUND ON)
  endif()
endif()
tilevm_need(TILEVM_ZSTD_FOUND "zstd 1.5.4 or newer" libzstd-dev)
add_library(tilevm_zstd INTERFACE)
target_include_directories(tilevm_zstd SYSTEM INTERFACE ${TILEVM_ZSTD_DIR})
target_link_libraries(tilevm_zstd INTERFACE ${TILEVM_ZSTD_LIBRARY})

# FlatBuffers: the header is made from the schema in the build folder, because generated code and library versions belong
# together.
find_package(FlatBuffers 2.0.8 CONFIG QUIET)
tilevm_need(FlatBuffers_FOUND "FlatBuffers 2.0.8 or newer" "libflatbuffers-dev flatbuffers-compiler flatbuffers-compiler-dev")
set(TILEVM_FLATC_FOUND OFF)
if(TARGET flatbuffers::flatc)
  set(TILEVM_FLATC_FOUND ON)
endif()
tilevm_need(TILEVM_FLATC_FOUND "the FlatBuffers compiler flatc" "flatbuffers-compiler flatbuffers-compiler-dev")
add_library(tilevm_schema INTERFACE)
file(GLOB TILEVM_SCHEMA CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/schema/tile.fbs)
if(TILEVM_SCHEMA)
  set(schema_dir ${PROJECT_BINARY_DIR}/generated/schema)
  add_custom_command(
    OUTPUT ${schema_dir}/tile_generated.h
    COMMAND flatbuffers::flatc --cpp --cpp-std c++17 --scoped-enums -o ${schema_dir} ${TILEVM_SCHEMA}
    DEPENDS ${TILEVM_SCHEMA}
    COMMENT "Generating tile_generated.h from schema/tile.fbs"
    VERBATIM)
  add_custom_target(tilevm_schema_header DEPENDS ${schema_dir}/tile_generated.h)
  add_dependencies(tilevm_schema tilevm_schema_header)
  get_target_property(dirs flatbuffers::flatbuffers INTERFACE_INCLUDE_DIRECTORIES)
  target_include_directories(tilevm_schema SYSTEM INTERFACE ${schema_dir} ${dirs})
endif()

# Tools only. spdlog is used as a header with fmt as a header: Debian ships both as shared libraries, and the programs
# should run where those are not installed.
find_package(CLI11 2.1 CONFIG QUIET)
tilevm_need(CLI11_FOUND "CLI11 2.1 or newer" libcli11-dev)
find_package(spdlog 1.10 CONFIG QUIET)
tilevm_need(spdlog_FOUND "spdlog 1.10 or newer" libspdlog-dev)
tilevm_headers(tilevm_cli CLI11::CLI11)
get_target_property(dirs spdlog::spdlog_header_only INTERFACE_INCLUDE_DIRECTORIES)
target_include_directories(tilevm_cli SYSTEM INTERFACE ${dirs})
if(TARGET fmt::fmt-header-only)
  target_compile_definitions(tilevm_cli INTERFACE SPDLOG_FMT_EXTERNAL FMT_HEADER_ONLY=1)
endif()

if(TILEVM_TESTS)
  find_package(doctest 2.4.9 CONFIG QUIET)
  tilevm_need(doctest_FOUND "doctest 2.4.9 or newer" doctest-dev)
  tilevm_headers(tilevm_doctest doctest::doctest)
  find_package(Python3 3.9 COMPONENTS Interpreter QUIET)
  tilevm_need(Python3_FOUND "Python 3.9 or newer (for the tests)" python3)
endif()
if(TILEVM_BENCH)
  find_package(benchmark 1.7 CONFIG QUIET)
  tilevm_need(benchmark_FOUND "Google Benchmark 1.7 or newer (-DTILEVM_BENCH=ON)" libbenchmark-dev)
endif()
