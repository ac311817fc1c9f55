/* SPDX-License-Identifier: MIT */
#include "tests/bench/amqp_link.h"

#include <amqp_tcp_socket.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define FRAME_MAX 131072

_Noreturn void die(const char *what)
{
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
    exit(1);
}

double now_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

amqp_connection_state_t link_open(char *const at[4])
{
    amqp_connection_state_t link = amqp_new_connection();
    amqp_socket_t *socket = link ? amqp_tcp_socket_new(link) : NULL;
    if (!socket || amqp_socket_open(socket, "127.0.0.1", (int)strtol(at[0], NULL, 10)) != 0)
        die("no connection");
    if (amqp_login(link, at[3], 0, FRAME_MAX, 0, AMQP_SASL_METHOD_PLAIN, at[1], at[2]).reply_type !=
        AMQP_RESPONSE_NORMAL)
        die("login refused");
    (void)amqp_channel_open(link, CHANNEL);
    (void)amqp_confirm_select(link, CHANNEL);
    if (amqp_get_rpc_reply(link).reply_type != AMQP_RESPONSE_NORMAL)
        die("no confirms");
    return link;
}

uint64_t link_wait_confirm(amqp_connection_state_t link, uint64_t confirmed)
{
    amqp_frame_t frame;
    amqp_maybe_release_buffers(link);
    if (amqp_simple_wait_frame(link, &frame) != AMQP_STATUS_OK ||
        frame.frame_type != AMQP_FRAME_METHOD || frame.payload.method.id != AMQP_BASIC_ACK_METHOD)
        die("no confirm");
    const amqp_basic_ack_t *ack = frame.payload.method.decoded;
    return ack->multiple ? (ack->delivery_tag > confirmed ? ack->delivery_tag : confirmed)
                         : confirmed + 1;
}

void link_close(amqp_connection_state_t link)
{
    (void)amqp_connection_close(link, AMQP_REPLY_SUCCESS);
    (void)amqp_destroy_connection(link);
}
