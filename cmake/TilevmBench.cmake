# Benchmarks: each tools/bench/NAME_bench.cpp becomes a program, with a main of its own or that of Google Benchmark.
file(GLOB bench_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/bench/*_bench.cpp)
foreach(source ${bench_sources})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE tile_runtime tilevm_compile benchmark::benchmark_main)
  target_compile_definitions(${name} PRIVATE TILE_BENCH_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
endforeach()
