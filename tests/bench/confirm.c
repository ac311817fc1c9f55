/* SPDX-License-Identifier: MIT */
/* confirm PORT USER PASSWORD VHOST COUNT WINDOW: publishes persistent messages to a durable quorum
 * queue of its own with at most WINDOW unconfirmed; the limit of whatever publishes. */

#include <amqp.h>
#include <amqp_tcp_socket.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CHANNEL = 1, FRAME_MAX = 131072 };

static const char queue_name[] = "bench.confirm";

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "confirm: %s\n", what);
    exit(1);
}

static double now_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static amqp_connection_state_t open_link(char **argv)
{
    amqp_connection_state_t link = amqp_new_connection();
    amqp_socket_t *socket = link ? amqp_tcp_socket_new(link) : NULL;
    if (!socket || amqp_socket_open(socket, "127.0.0.1", (int)strtol(argv[1], NULL, 10)) != 0)
        die("no connection");
    if (amqp_login(link, argv[4], 0, FRAME_MAX, 0, AMQP_SASL_METHOD_PLAIN, argv[2], argv[3])
            .reply_type != AMQP_RESPONSE_NORMAL)
        die("login refused");
    (void)amqp_channel_open(link, CHANNEL);
    (void)amqp_confirm_select(link, CHANNEL);
    if (amqp_get_rpc_reply(link).reply_type != AMQP_RESPONSE_NORMAL)
        die("no confirms");
    return link;
}

static void declare(amqp_connection_state_t link)
{
    amqp_table_entry_t kind = {
        .key = amqp_cstring_bytes("x-queue-type"),
        .value = {.kind = AMQP_FIELD_KIND_UTF8, .value.bytes = amqp_cstring_bytes("quorum")}};
    amqp_table_t args = {.num_entries = 1, .entries = &kind};
    (void)amqp_queue_declare(link, CHANNEL, amqp_cstring_bytes(queue_name), 0, 1, 0, 0, args);
    if (amqp_get_rpc_reply(link).reply_type != AMQP_RESPONSE_NORMAL)
        die("no queue");
    (void)amqp_queue_purge(link, CHANNEL, amqp_cstring_bytes(queue_name));
}

static void publish(amqp_connection_state_t link)
{
    static const char body[] =
        "{\"v\":1,\"job\":\"01934567-89ab-7def-8123-456789abcdef\",\"epoch\":1}";
    amqp_basic_properties_t as = {._flags = AMQP_BASIC_DELIVERY_MODE_FLAG, .delivery_mode = 2};
    if (amqp_basic_publish(link, CHANNEL, amqp_empty_bytes, amqp_cstring_bytes(queue_name), 0, 0,
                           &as, amqp_cstring_bytes(body)) != AMQP_STATUS_OK)
        die("publish failed");
}

/* Waits for one confirm; all up to the answer are confirmed. */
static uint64_t wait_confirm(amqp_connection_state_t link, uint64_t confirmed)
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

int main(int argc, char **argv)
{
    if (argc != 7) {
        fprintf(stderr, "usage: confirm PORT USER PASSWORD VHOST COUNT WINDOW\n");
        return 2;
    }
    uint64_t count = strtoull(argv[5], NULL, 10), window = strtoull(argv[6], NULL, 10);
    amqp_connection_state_t link = open_link(argv);
    declare(link);
    double from = now_s();
    uint64_t sent = 0, confirmed = 0;
    while (confirmed < count) {
        while (sent < count && sent - confirmed < window) {
            publish(link);
            sent++;
        }
        confirmed = wait_confirm(link, confirmed);
    }
    printf("{\"per_s\":%.1f}\n", (double)count / (now_s() - from));
    (void)amqp_queue_delete(link, CHANNEL, amqp_cstring_bytes(queue_name), 0, 0);
    (void)amqp_connection_close(link, AMQP_REPLY_SUCCESS);
    (void)amqp_destroy_connection(link);
    return 0;
}
