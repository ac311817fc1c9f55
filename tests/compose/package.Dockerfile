# The Debian package on a machine where nothing else is.
FROM debian:bookworm-slim
COPY *.deb /tmp/
RUN printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d && chmod 755 /usr/sbin/policy-rc.d \
    && apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        /tmp/*.deb systemd mariadb-server rabbitmq-server man-db groff-base bash-completion zsh fish
