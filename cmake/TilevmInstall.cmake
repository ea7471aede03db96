# Installed: the programs with their manual pages and shell completions, the public headers, the libraries, and a CMake
# package that offers tilevm::tilevm.
include(CMakePackageConfigHelpers)
get_property(libraries GLOBAL PROPERTY TILEVM_INSTALL_LIBRARIES)
get_property(programs GLOBAL PROPERTY TILEVM_INSTALL_PROGRAMS)
set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tilevm)

install(TARGETS ${libraries} EXPORT tilevmTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(programs)
  install(TARGETS ${programs} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
# The programs write their own manual pages and completions, so they must run where they are built.
if(NOT CMAKE_CROSSCOMPILING)
  set(docs ${PROJECT_BINARY_DIR}/generated/docs)
  set(data ${CMAKE_INSTALL_DATADIR})
  set(made)
  foreach(program ${programs})
    set(files ${docs}/${program}.1 ${docs}/${program}.bash ${docs}/_${program} ${docs}/${program}.fish)
    add_custom_command(
      OUTPUT ${files}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${docs}
      COMMAND ${program} man -o ${docs}/${program}.1
      COMMAND ${program} completions bash -o ${docs}/${program}.bash
      COMMAND ${program} completions zsh -o ${docs}/_${program}
      COMMAND ${program} completions fish -o ${docs}/${program}.fish
      DEPENDS ${program}
      COMMENT "Writing the manual page and the completions of ${program}"
      VERBATIM)
    list(APPEND made ${files})
    install(FILES ${docs}/${program}.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
    install(FILES ${docs}/${program}.bash DESTINATION ${data}/bash-completion/completions RENAME ${program})
    install(FILES ${docs}/_${program} DESTINATION ${data}/zsh/site-functions)
    install(FILES ${docs}/${program}.fish DESTINATION ${data}/fish/vendor_completions.d)
  endforeach()
  add_custom_target(tilevm_docs ALL DEPENDS ${made})
endif()
install(DIRECTORY DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tilevm)  # the package names this folder
install(DIRECTORY ${PROJECT_SOURCE_DIR}/vm/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} OPTIONAL
        FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(EXPORT tilevmTargets NAMESPACE tilevm:: DESTINATION ${config_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/tilevmConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/tilevmConfig.cmake
                              INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tilevmConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tilevmConfig.cmake ${PROJECT_BINARY_DIR}/tilevmConfigVersion.cmake
        DESTINATION ${config_dir})
