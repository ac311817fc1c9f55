/* SPDX-License-Identifier: MIT */
#ifndef COMMON_BASE_ADDRESS_H
#define COMMON_BASE_ADDRESS_H

/* address: which addresses a process may be sent to by people whom it does not trust. Only public
 * ones, and those that are allowed by name: loopback, private, link-local, shared (RFC 6598),
 * multicast, reserved and documentation addresses are not public, and neither is an IPv6 address
 * that wraps such an IPv4 address.
 * Threads: any. Memory: the caller's. */

#include "common/base/err.h"
#include "common/base/sv.h"

#include <sys/socket.h>

#define ADDRESS_NETS_MAX 64

struct address_net { /* IPv4 as ::ffff:a.b.c.d */
    uint8_t bytes[16];
    unsigned bits;
};

struct address_nets {
    struct address_net items[ADDRESS_NETS_MAX];
    size_t count;
};

/* "10.1.0.0/16, 127.0.0.1, fd00::/8"; "" for none. ERR_CONFIG names the part that is no network. */
MUST_USE enum err_code address_nets_parse(const char *text, struct address_nets *ret_nets,
                                          struct err *err);
/* false as well for what is neither IPv4 nor IPv6. */
bool address_may(const struct address_nets *allowed, const struct sockaddr *address);
/* What a host keeps for itself: link-local addresses, and where some clouds tell credentials beyond
 * them; also as an IPv4 address within an IPv6 one. */
bool address_is_of_host(const struct sockaddr *address);
/* A host as it stands in a URL, with or without brackets: *ret_literal tells whether it is an
 * address itself; then the answer is address_may(), otherwise true. */
bool address_host_may(const struct address_nets *allowed, struct sv host, bool *ret_literal);

#endif
