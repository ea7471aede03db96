# Run with cmake -P by TilevmBuildInfo.cmake at build time.
set(TILEVM_GIT "")
find_program(GIT git)
if(GIT AND EXISTS ${SOURCE_DIR}/.git)
  execute_process(COMMAND ${GIT} describe --tags --always --dirty
                  WORKING_DIRECTORY ${SOURCE_DIR}
                  OUTPUT_VARIABLE described RESULT_VARIABLE failed ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT failed)
    set(TILEVM_GIT ${described})
  endif()
endif()
foreach(name GIT COMPILER TARGET BUILD_TYPE FLAGS OPTIONS)
  string(REGEX REPLACE "[\"\\\\]" "\\\\\\0" TILEVM_${name} "${TILEVM_${name}}")
endforeach()
configure_file(${TEMPLATE} ${OUTPUT} @ONLY)
