/* SPDX-License-Identifier: MIT */
#include "tests/support/tcp_proxy.h"

#include "common/base/wake.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAIRS_MAX 32
#define CHUNK_BYTES ((size_t)64 * 1024)

struct pair {
    int fd[2]; /* -1: free */
};

struct tcp_proxy {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t done;
    int listen_fd, wake_fd;
    struct sockaddr_in upstream;
    int port;
    enum tcp_proxy_mode mode_asked; /* locked */
    enum tcp_proxy_mode mode;       /* the thread's */
    unsigned cuts_asked, cuts_done; /* a change of mode is a turn of the thread, too */
    bool cut, stop;
    struct pair pairs[PAIRS_MAX];
    char chunk[CHUNK_BYTES]; /* the thread's */
};

static void close_pair(struct pair *pair)
{
    fd_close(&pair->fd[0]);
    fd_close(&pair->fd[1]);
}

static void accept_one(struct tcp_proxy *proxy)
{
    int fd = accept4(proxy->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    for (size_t i = 0; i < PAIRS_MAX && proxy->mode != PROXY_SHUT; i++) {
        struct pair *pair = &proxy->pairs[i];
        if (pair->fd[0] >= 0)
            continue;
        pair->fd[0] = fd;
        pair->fd[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(pair->fd[1], (struct sockaddr *)&proxy->upstream, sizeof(proxy->upstream)) != 0)
            close_pair(pair);
        return;
    }
    fd_close(&fd);
}

static void pass_on(struct tcp_proxy *proxy, struct pair *pair, int from)
{
    ssize_t got = recv(pair->fd[from], proxy->chunk, sizeof(proxy->chunk), MSG_DONTWAIT);
    if (got <= 0 || send(pair->fd[1 - from], proxy->chunk, (size_t)got, MSG_NOSIGNAL) != got)
        close_pair(pair);
}

/* What the callers asked for; false: the end. */
static bool follow_orders(struct tcp_proxy *proxy)
{
    (void)pthread_mutex_lock(&proxy->lock);
    proxy->mode = proxy->mode_asked;
    for (size_t i = 0; i < PAIRS_MAX && (proxy->cut || proxy->mode == PROXY_SHUT); i++)
        close_pair(&proxy->pairs[i]);
    proxy->cut = false;
    proxy->cuts_done = proxy->cuts_asked;
    (void)pthread_cond_broadcast(&proxy->done);
    bool go_on = !proxy->stop;
    (void)pthread_mutex_unlock(&proxy->lock);
    return go_on;
}

static size_t fill_polls(struct tcp_proxy *proxy, struct pollfd *polls)
{
    size_t count = 0;
    polls[count++] = (struct pollfd){.fd = proxy->wake_fd, .events = POLLIN};
    polls[count++] = (struct pollfd){.fd = proxy->listen_fd, .events = POLLIN};
    for (size_t i = 0; i < PAIRS_MAX; i++) {
        for (int side = 0; side < 2; side++) {
            int fd = proxy->mode == PROXY_HOLD ? -1 : proxy->pairs[i].fd[side];
            polls[count++] = (struct pollfd){.fd = fd, .events = POLLIN};
        }
    }
    return count;
}

static void *proxy_main(void *arg)
{
    struct tcp_proxy *proxy = arg;
    struct pollfd polls[2 + 2 * PAIRS_MAX];
    while (follow_orders(proxy)) {
        size_t count = fill_polls(proxy, polls);
        if (poll(polls, (nfds_t)count, -1) < 0)
            continue;
        if (polls[0].revents) {
            wake_drain(proxy->wake_fd);
            continue;
        }
        if (polls[1].revents)
            accept_one(proxy);
        for (size_t i = 2; i < count; i++) {
            struct pair *pair = &proxy->pairs[(i - 2) / 2];
            if (polls[i].revents && pair->fd[0] == polls[i & ~(size_t)1].fd && pair->fd[0] >= 0)
                pass_on(proxy, pair, (int)(i % 2));
        }
    }
    return NULL;
}

static bool start_listening(struct tcp_proxy *proxy)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    proxy->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    proxy->wake_fd = wake_open();
    if (bind(proxy->listen_fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(proxy->listen_fd, PAIRS_MAX) != 0 ||
        getsockname(proxy->listen_fd, (struct sockaddr *)&address, &size) != 0)
        return false;
    proxy->port = ntohs(address.sin_port);
    return pthread_create(&proxy->thread, NULL, proxy_main, proxy) == 0;
}

struct tcp_proxy *tcp_proxy_open(const char *host, int port)
{
    struct tcp_proxy *proxy = calloc(1, sizeof(*proxy));
    if (!proxy)
        return NULL;
    for (size_t i = 0; i < PAIRS_MAX; i++)
        proxy->pairs[i] = (struct pair){{-1, -1}};
    proxy->upstream =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    (void)pthread_mutex_init(&proxy->lock, NULL);
    (void)pthread_cond_init(&proxy->done, NULL);
    if (inet_pton(AF_INET, host, &proxy->upstream.sin_addr) != 1 || !start_listening(proxy)) {
        fd_close(&proxy->listen_fd);
        fd_close(&proxy->wake_fd);
        free(proxy);
        return NULL;
    }
    return proxy;
}

static void order(struct tcp_proxy *proxy)
{
    unsigned mine = ++proxy->cuts_asked;
    wake_raise(proxy->wake_fd);
    while ((int)(proxy->cuts_done - mine) < 0)
        (void)pthread_cond_wait(&proxy->done, &proxy->lock);
}

void tcp_proxy_set(struct tcp_proxy *proxy, enum tcp_proxy_mode mode)
{
    (void)pthread_mutex_lock(&proxy->lock);
    proxy->mode_asked = mode;
    order(proxy);
    (void)pthread_mutex_unlock(&proxy->lock);
}

void tcp_proxy_cut(struct tcp_proxy *proxy)
{
    (void)pthread_mutex_lock(&proxy->lock);
    proxy->cut = true;
    order(proxy);
    (void)pthread_mutex_unlock(&proxy->lock);
}

int tcp_proxy_port(const struct tcp_proxy *proxy)
{
    return proxy->port;
}

void tcp_proxy_free(struct tcp_proxy *proxy)
{
    if (!proxy)
        return;
    (void)pthread_mutex_lock(&proxy->lock);
    proxy->stop = true;
    order(proxy);
    (void)pthread_mutex_unlock(&proxy->lock);
    (void)pthread_join(proxy->thread, NULL);
    for (size_t i = 0; i < PAIRS_MAX; i++)
        close_pair(&proxy->pairs[i]);
    fd_close(&proxy->listen_fd);
    fd_close(&proxy->wake_fd);
    free(proxy);
}
