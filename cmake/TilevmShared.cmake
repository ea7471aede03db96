# libtilevm: the C interface of vm/include/tilevm/tilevm.h as a shared library that carries all it needs and shows nothing else.
option(TILEVM_SHARED "Build libtilevm, the shared library with the C interface" ON)
# A program that is not built with the sanitizers cannot load a library that is.
if(TILEVM_SHARED AND NOT TILEVM_SANITIZE)
  add_library(tilevm_shared SHARED ${PROJECT_SOURCE_DIR}/vm/capi/capi.cpp)
  target_link_libraries(tilevm_shared PRIVATE $<BUILD_INTERFACE:tile_runtime> $<BUILD_INTERFACE:tilevm_compile> $<BUILD_INTERFACE:tilevm_json>
                        $<BUILD_INTERFACE:tilevm_build_info>)
  add_dependencies(tilevm_shared tilevm_build_info_header)
  target_include_directories(tilevm_shared INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/vm/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  # The number behind .so is that of the interface (TILEVM_API_VERSION).
  set_target_properties(tilevm_shared PROPERTIES OUTPUT_NAME tilevm EXPORT_NAME libtilevm VERSION 1.${PROJECT_VERSION} SOVERSION 1
                        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  if(NOT APPLE)
    target_link_options(tilevm_shared PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/libtilevm.map -Wl,--no-undefined)
    set_target_properties(tilevm_shared PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/libtilevm.map)
    if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
      target_link_options(tilevm_shared PRIVATE -static-libstdc++ -static-libgcc)
    endif()
  endif()
  install(TARGETS tilevm_shared EXPORT tilevmTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
