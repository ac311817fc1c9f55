/* SPDX-License-Identifier: MIT */
#ifndef COMMON_BASE_HOSTS_H
#define COMMON_BASE_HOSTS_H

/* hosts: a list of servers in one line: "HOST, HOST:PORT, ::1, [::1]:PORT".
 * Threads: any. Memory: the caller's. */

#include "common/base/base.h"

#define HOSTS_MAX 16
#define HOST_SIZE 256 /* of one host's name, and its NUL */

struct host {
    char name[HOST_SIZE]; /* without brackets */
    int port;
};

/* How many; 0 for a text that is no such list. */
MUST_USE unsigned hosts_count(const char *text);
/* The one at `which`, counted round and round, with `port` if it names none. false: no such list.
 */
MUST_USE bool hosts_at(const char *text, unsigned which, int port, struct host *ret_host);

#endif
