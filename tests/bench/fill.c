/* SPDX-License-Identifier: MIT */
/* fill PORT USER PASSWORD VHOST QUEUE PREFIX FIRST COUNT: puts the messages of jobs whose rows were
 * written straight into the database onto their queue, many in flight. A job's id is PREFIX (24 hex
 * digits) and its number in eight. Prints how long it took. */

#include "tests/bench/amqp_link.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 4000, PREFIX_DIGITS = 24, ID_SIZE = 37 };

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

int main(int argc, char **argv)
{
    if (argc != 9 || strlen(argv[6]) != PREFIX_DIGITS) {
        fprintf(stderr, "usage: fill PORT USER PASSWORD VHOST QUEUE PREFIX FIRST COUNT\n");
        return 2;
    }
    uint64_t first = strtoull(argv[7], NULL, 10), count = strtoull(argv[8], NULL, 10);
    uint64_t sent = 0, confirmed = 0;
    char id[ID_SIZE];
    amqp_connection_state_t link = link_open(argv + 1);
    double from = now_s();
    while (confirmed < count) {
        for (; sent < count && sent - confirmed < WINDOW; sent++) {
            make_id(argv[6], first + sent, id);
            publish(link, argv[5], id);
        }
        confirmed = link_wait_confirm(link, confirmed);
    }
    printf("{\"seconds\":%.3f}\n", now_s() - from);
    link_close(link);
    return 0;
}
