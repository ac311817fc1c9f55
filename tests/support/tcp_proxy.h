/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_TCP_PROXY_H
#define TESTS_SUPPORT_TCP_PROXY_H

/* tcp_proxy: a wire that a test can cut. It listens on 127.0.0.1 and hands bytes on both ways.
 * Threads: any. */

#include "common/base/base.h"

struct tcp_proxy;

enum tcp_proxy_mode {
    PROXY_PASS,
    PROXY_HOLD, /* connections are made and stay, no byte gets through */
    PROXY_SHUT, /* all connections are cut; new ones are cut at once */
};

struct tcp_proxy *tcp_proxy_open(const char *host, int port); /* NULL: errno */
void tcp_proxy_free(struct tcp_proxy *proxy);
int tcp_proxy_port(const struct tcp_proxy *proxy);
/* In force when it returns. */
void tcp_proxy_set(struct tcp_proxy *proxy, enum tcp_proxy_mode mode);
/* Cuts what is connected now; new connections pass. */
void tcp_proxy_cut(struct tcp_proxy *proxy);

#endif
