# Headers, libraries, the program with its man pages and completions, lnorm.pc for pkg-config, and the package that
# find_package(lnorm) reads.
include(CMakePackageConfigHelpers)

install(FILES include/lnorm.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS lnorm lnorm_shared EXPORT lnorm
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

if(LNORM_FILES)
    install(FILES include/lnorm_files.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
    install(TARGETS lnorm_files ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

if(LNORM_CLI)
    install(TARGETS lnorm_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    file(GLOB man_pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/man/*.1)
    install(FILES ${man_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
    install(FILES completions/lnorm.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME lnorm)
    install(FILES completions/_lnorm DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
endif()

set(package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/lnorm)
install(EXPORT lnorm NAMESPACE lnorm:: FILE lnorm-targets.cmake DESTINATION ${package_directory})
configure_file(cmake/lnorm-config.cmake.in lnorm-config.cmake @ONLY)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/lnorm-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/lnorm-config.cmake ${PROJECT_BINARY_DIR}/lnorm-config-version.cmake
    DESTINATION ${package_directory})

# Paths relative to the file itself: the prefix may be moved after the installation.
file(RELATIVE_PATH pc_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
configure_file(cmake/lnorm.pc.in lnorm.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/lnorm.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
