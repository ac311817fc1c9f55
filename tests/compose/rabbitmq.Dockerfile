# Stands in for the public rabbitmq image: the same paths, user and commands.
FROM debian:bookworm-slim
RUN printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d && chmod 755 /usr/sbin/policy-rc.d \
    && apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends rabbitmq-server
ENV HOME=/var/lib/rabbitmq PATH=/usr/lib/rabbitmq/bin:/usr/sbin:/usr/bin:/sbin:/bin
VOLUME /var/lib/rabbitmq
USER rabbitmq
CMD ["/usr/lib/rabbitmq/bin/rabbitmq-server"]
