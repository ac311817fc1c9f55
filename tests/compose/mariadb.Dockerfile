# Stands in for the public mariadb image: the same variables, paths and commands.
FROM debian:bookworm-slim
RUN printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d && chmod 755 /usr/sbin/policy-rc.d \
    && apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends mariadb-server \
    && rm -rf /var/lib/mysql/* && install -d -o mysql -g mysql /run/mysqld
COPY mariadb_entry /usr/local/bin/mariadb_entry
VOLUME /var/lib/mysql
CMD ["/usr/local/bin/mariadb_entry"]
