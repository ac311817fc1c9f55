/* SPDX-License-Identifier: MIT */
#ifndef TESTS_BENCH_AMQP_LINK_H
#define TESTS_BENCH_AMQP_LINK_H

/* amqp_link: what the tools that publish share: one channel with confirms. Each call ends the tool
 * with a word on stderr if it cannot. */

#include <amqp.h>
#include <stdint.h>

enum { CHANNEL = 1 };

_Noreturn void die(const char *what);
double now_s(void);
/* PORT USER PASSWORD VHOST */
amqp_connection_state_t link_open(char *const at[4]);
/* Waits for one answer; all up to it are confirmed. How many are by then. */
uint64_t link_wait_confirm(amqp_connection_state_t link, uint64_t confirmed);
void link_close(amqp_connection_state_t link);

#endif
