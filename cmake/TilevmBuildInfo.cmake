# tilevm_build_info.h: version, commit, compiler and options of this build. The commit is looked up at build time, so that
# the header is right after every commit; it is rewritten only when its text changes.
set(info_dir ${PROJECT_BINARY_DIR}/generated)
get_filename_component(compiler_name ${CMAKE_CXX_COMPILER} NAME)
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
string(STRIP "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}}" build_flags)
string(TOLOWER "gpu=${TILEVM_GPU}" info_options)
foreach(option SANITIZE FUZZ WERROR)
  string(TOLOWER ${option} lower)
  if(TILEVM_${option})
    string(APPEND info_options " ${lower}=on")
  endif()
endforeach()
set(info_arguments
    -DSOURCE_DIR=${PROJECT_SOURCE_DIR}
    -DOUTPUT=${info_dir}/tilevm_build_info.h
    -DTEMPLATE=${PROJECT_SOURCE_DIR}/cmake/tilevm_build_info.h.in
    -DTILEVM_VERSION=${PROJECT_VERSION}
    "-DTILEVM_COMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
    -DTILEVM_TARGET=${CMAKE_SYSTEM_PROCESSOR}-${CMAKE_SYSTEM_NAME}
    -DTILEVM_BUILD_TYPE=${CMAKE_BUILD_TYPE}
    "-DTILEVM_FLAGS=${build_flags}"
    "-DTILEVM_OPTIONS=${info_options}"
    -P ${PROJECT_SOURCE_DIR}/cmake/write_build_info.cmake)
add_custom_target(tilevm_build_info_header
                  COMMAND ${CMAKE_COMMAND} ${info_arguments}
                  BYPRODUCTS ${info_dir}/tilevm_build_info.h
                  COMMENT "Checking tilevm_build_info.h"
                  VERBATIM)
add_library(tilevm_build_info INTERFACE)
add_dependencies(tilevm_build_info tilevm_build_info_header)
target_include_directories(tilevm_build_info INTERFACE ${info_dir})
