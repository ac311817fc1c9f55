# What `cmake --install` and the Debian package put where.
include(GNUInstallDirs)

# sluice-worker finds the sluice-runner that lies beside it.
install(TARGETS sluice sluice-web sluice-worker sluice-runner
    sluice-recovery sluice-alternate sluice-deadletter sluice-webhook
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

# sluice-web finds its page there; built by the target ui.
install(DIRECTORY ${CMAKE_BINARY_DIR}/share/sluice/ui DESTINATION ${CMAKE_INSTALL_DATADIR}/sluice
    OPTIONAL)

# generate FILE WORD...: what the command line prints of itself.
function(generate file)
    add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/share/${file}
        COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/share
        COMMAND sluice ${ARGN} > ${CMAKE_BINARY_DIR}/share/${file}
        DEPENDS sluice VERBATIM)
    set(generated ${generated} ${CMAKE_BINARY_DIR}/share/${file} PARENT_SCOPE)
endfunction()
generate(sluice.1 man sluice)
generate(sluice.conf.5 man sluice.conf)
foreach(page sluice-web sluice-worker sluice-runner sluice-recovery sluice-alternate
        sluice-deadletter sluice-webhook)
    generate(${page}.8 man ${page})
    install(FILES ${CMAKE_BINARY_DIR}/share/${page}.8 DESTINATION ${CMAKE_INSTALL_MANDIR}/man8)
endforeach()
foreach(shell bash zsh fish)
    generate(completion.${shell} completion ${shell})
endforeach()
if(SLUICE_SANITIZE)
    add_custom_target(share DEPENDS ${generated})
else()
    add_custom_target(share ALL DEPENDS ${generated})
endif()
install(FILES ${CMAKE_BINARY_DIR}/share/sluice.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${CMAKE_BINARY_DIR}/share/sluice.conf.5 DESTINATION ${CMAKE_INSTALL_MANDIR}/man5)
install(FILES ${CMAKE_BINARY_DIR}/share/completion.bash RENAME sluice
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${CMAKE_BINARY_DIR}/share/completion.zsh RENAME _sluice
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES ${CMAKE_BINARY_DIR}/share/completion.fish RENAME sluice.fish
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

foreach(unit sluice-web sluice-worker@ sluice-recovery sluice-alternate sluice-deadletter
        sluice-webhook)
    configure_file(docker/systemd/${unit}.service.in ${CMAKE_BINARY_DIR}/systemd/${unit}.service
        @ONLY)
    install(FILES ${CMAKE_BINARY_DIR}/systemd/${unit}.service DESTINATION lib/systemd/system)
endforeach()
install(FILES docker/systemd/sysusers.conf RENAME sluice.conf DESTINATION lib/sysusers.d)
install(FILES docker/systemd/tmpfiles.conf RENAME sluice.conf DESTINATION lib/tmpfiles.d)
install(FILES docker/rabbitmq/rabbitmq.conf docker/mariadb/sluice.cnf
    DESTINATION ${CMAKE_INSTALL_DATADIR}/sluice)
install(FILES README.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_CONTACT "The Sluice authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "job service: REST, filters, RabbitMQ, workers, recovery")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "mariadb-server, rabbitmq-server")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
    ${CMAKE_SOURCE_DIR}/docker/debian/postinst ${CMAKE_SOURCE_DIR}/docker/debian/prerm)
include(CPack)
