# The conformance suite: installed as files beside the corpus that its generator reads, for `tilevm conformance`; and this project's CPU machine
# as a shared library with the suite's C interface.
set(data_dir ${CMAKE_INSTALL_DATADIR}/tilevm)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/conformance DESTINATION ${data_dir}
        PATTERN "__pycache__" EXCLUDE PATTERN "results" EXCLUDE PATTERN "*.cpp" EXCLUDE)
foreach(part invalid odd text tileirbc)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/tests/corpus/${part} DESTINATION ${data_dir}/tests/corpus)
endforeach()

# A program that is not built with the sanitizers cannot load a library that is.
if(TILEVM_TESTS AND NOT TILEVM_SANITIZE)
  add_library(tilevm_impl MODULE ${PROJECT_SOURCE_DIR}/conformance/abi/tilevm_impl.cpp)
  target_link_libraries(tilevm_impl PRIVATE tile_runtime tilevm_compile)
  set_target_properties(tilevm_impl PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
endif()
