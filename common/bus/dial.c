/* SPDX-License-Identifier: MIT */
#include "common/bus/dial.h"

#include "common/base/clock.h"
#include "common/base/wake.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

/* As much as the system allows: while poll() says that the socket can be written, a third of this
 * is free, so a batch of ours never blocks. */
#define SEND_BUFFER_BYTES (1024 * 1024)

/* 0, or an errno. */
static int wait_connected(const struct dial *dial, int fd)
{
    int64_t deadline = clock_mono_ms() + dial->timeout_ms;
    for (;;) {
        struct pollfd polls[] = {{.fd = fd, .events = POLLOUT},
                                 {.fd = dial->wake_fd, .events = POLLIN}};
        int64_t left = deadline - clock_mono_ms();
        if (atomic_load(dial->stop))
            return ECANCELED;
        if (left <= 0)
            return ETIMEDOUT;
        if (poll(polls, ARRAY_LEN(polls), (int)left) < 0 && errno != EINTR)
            return errno;
        if (polls[1].revents)
            wake_drain(dial->wake_fd);
        if (polls[0].revents)
            break;
    }
    int result = 0;
    socklen_t size = sizeof(result);
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &result, &size) != 0)
        return errno;
    return result;
}

static void set_option(int fd, int level, int option, int value)
{
    /* Best effort: each of them only makes a good connection better. */
    (void)setsockopt(fd, level, option, &value, sizeof(value));
}

void dial_tune(int fd, int user_timeout_ms)
{
    set_option(fd, SOL_SOCKET, SO_SNDBUF, SEND_BUFFER_BYTES);
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, user_timeout_ms);
}

static int connect_one(const struct dial *dial, const struct addrinfo *address, int *ret_fd)
{
    FD_AUTO int fd = socket(address->ai_family, address->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
                            address->ai_protocol);
    if (fd < 0)
        return errno;
    dial_tune(fd, dial->user_timeout_ms);
    if (connect(fd, address->ai_addr, address->ai_addrlen) != 0 && errno != EINPROGRESS)
        return errno;
    int failed = wait_connected(dial, fd);
    if (failed)
        return failed;
    *ret_fd = fd;
    fd = -1;
    return 0;
}

enum err_code dial_tcp(const struct dial *dial, int *ret_fd, struct err *err)
{
    struct addrinfo *addresses = NULL;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    char port[16];
    (void)snprintf(port, sizeof(port), "%d", dial->port);
    int failed = getaddrinfo(dial->host, port, &hints, &addresses);
    if (failed)
        return err_set(err, ERR_BROKER_AWAY, "broker host %s: %s", dial->host,
                       gai_strerror(failed));
    int reason = EADDRNOTAVAIL;
    for (const struct addrinfo *at = addresses; at && reason; at = at->ai_next)
        reason = connect_one(dial, at, ret_fd);
    freeaddrinfo(addresses);
    if (reason)
        return err_set_errno(err, ERR_BROKER_AWAY, reason, "broker at %s port %d", dial->host,
                             dial->port);
    return ERR_OK;
}
