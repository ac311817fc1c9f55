/* SPDX-License-Identifier: MIT */
/* fill PORT USER PASSWORD VHOST QUEUE PREFIX FIRST COUNT: puts the messages of jobs whose rows were
 * written straight into the database onto their queue, many in flight. A job's id is PREFIX (24 hex
 * digits) and its number in eight. Prints how long it took. */

#include <amqp.h>
#include <amqp_tcp_socket.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CHANNEL = 1, FRAME_MAX = 131072, WINDOW = 4000, PREFIX_DIGITS = 24, ID_SIZE = 37 };

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "fill: %s\n", what);
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

static void make_id(const char *prefix, uint64_t number, char ret_id[ID_SIZE])
{
    char hex[64];
    (void)snprintf(hex, sizeof(hex), "%.*s%08" PRIx64, PREFIX_DIGITS, prefix, number);
    (void)snprintf(ret_id, ID_SIZE, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
                   hex + 20);
}

static void publish(amqp_connection_state_t link, const char *queue, const char *id)
{
    char body[128];
    (void)snprintf(body, sizeof(body), "{\"v\":1,\"job\":\"%s\",\"epoch\":1}", id);
    amqp_basic_properties_t as = {._flags = AMQP_BASIC_DELIVERY_MODE_FLAG |
                                            AMQP_BASIC_CONTENT_TYPE_FLAG |
                                            AMQP_BASIC_MESSAGE_ID_FLAG,
                                  .delivery_mode = 2,
                                  .content_type = amqp_cstring_bytes("application/json"),
                                  .message_id = amqp_cstring_bytes(id)};
    if (amqp_basic_publish(link, CHANNEL, amqp_empty_bytes, amqp_cstring_bytes(queue), 1, 0, &as,
                           amqp_cstring_bytes(body)) != AMQP_STATUS_OK)
        die("publish failed");
}

static uint64_t wait_confirm(amqp_connection_state_t link, uint64_t confirmed)
{
    amqp_frame_t frame;
    amqp_maybe_release_buffers(link);
    if (amqp_simple_wait_frame(link, &frame) != AMQP_STATUS_OK ||
        frame.frame_type != AMQP_FRAME_METHOD || frame.payload.method.id != AMQP_BASIC_ACK_METHOD)
        die("not confirmed");
    const amqp_basic_ack_t *ack = frame.payload.method.decoded;
    return ack->multiple ? (ack->delivery_tag > confirmed ? ack->delivery_tag : confirmed)
                         : confirmed + 1;
}

int main(int argc, char **argv)
{
    if (argc != 9 || strlen(argv[6]) != PREFIX_DIGITS) {
        fprintf(stderr, "usage: fill PORT USER PASSWORD VHOST QUEUE PREFIX FIRST COUNT\n");
        return 2;
    }
    uint64_t first = strtoull(argv[7], NULL, 10), count = strtoull(argv[8], NULL, 10);
    uint64_t sent = 0, confirmed = 0;
    char id[ID_SIZE];
    amqp_connection_state_t link = open_link(argv);
    double from = now_s();
    while (confirmed < count) {
        for (; sent < count && sent - confirmed < WINDOW; sent++) {
            make_id(argv[6], first + sent, id);
            publish(link, argv[5], id);
        }
        confirmed = wait_confirm(link, confirmed);
    }
    printf("{\"seconds\":%.3f}\n", now_s() - from);
    (void)amqp_connection_close(link, AMQP_REPLY_SUCCESS);
    (void)amqp_destroy_connection(link);
    return 0;
}
