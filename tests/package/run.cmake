# Installs the build into an empty folder, moves it, builds the project beside this file against it, and runs what was installed.
set(work ${BUILD_DIR}/package_test)
file(REMOVE_RECURSE ${work})

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(failed)
    message(FATAL_ERROR "failed (${failed}): ${ARGN}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${work}/first)
# An installation must not remember where it was made.
file(RENAME ${work}/first ${work}/prefix)
run(${CMAKE_COMMAND} -S ${CONSUMER} -B ${work}/build -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX}
    -DCMAKE_PREFIX_PATH=${work}/prefix -DINSTALLED=${work}/prefix -DWANTED_VERSION=${VERSION})
run(${CMAKE_COMMAND} --build ${work}/build)
run(${work}/build/consumer)

foreach(program tileasm tilevm)
  if(EXISTS ${work}/prefix/bin/${program})
    run(${work}/prefix/bin/${program} --version)
    if(NOT output MATCHES "${VERSION}")
      message(FATAL_ERROR "${program} --version does not name ${VERSION}:\n${output}")
    endif()
  endif()
  if(EXISTS ${work}/prefix/bin/${program})
    foreach(file man/man1/${program}.1 bash-completion/completions/${program} zsh/site-functions/_${program}
                 fish/vendor_completions.d/${program}.fish)
      if(NOT EXISTS ${work}/prefix/share/${file})
        message(FATAL_ERROR "share/${file} is not installed")
      endif()
    endforeach()
  endif()
endforeach()
