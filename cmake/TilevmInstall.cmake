# Installed: the programs, the public headers, the libraries, and a CMake package that offers tilevm::tilevm.
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
