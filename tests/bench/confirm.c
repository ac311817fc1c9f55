/* SPDX-License-Identifier: MIT */
/* confirm PORT USER PASSWORD VHOST COUNT WINDOW: publishes persistent messages to a durable quorum
 * queue of its own with at most WINDOW unconfirmed; the limit of whatever publishes. */

#include "tests/bench/amqp_link.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char queue_name[] = "bench.confirm";

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

int main(int argc, char **argv)
{
    if (argc != 7) {
        fprintf(stderr, "usage: confirm PORT USER PASSWORD VHOST COUNT WINDOW\n");
        return 2;
    }
    uint64_t count = strtoull(argv[5], NULL, 10), window = strtoull(argv[6], NULL, 10);
    amqp_connection_state_t link = link_open(argv + 1);
    declare(link);
    double from = now_s();
    uint64_t sent = 0, confirmed = 0;
    while (confirmed < count) {
        while (sent < count && sent - confirmed < window) {
            publish(link);
            sent++;
        }
        confirmed = link_wait_confirm(link, confirmed);
    }
    printf("{\"per_s\":%.1f}\n", (double)count / (now_s() - from));
    (void)amqp_queue_delete(link, CHANNEL, amqp_cstring_bytes(queue_name), 0, 0);
    link_close(link);
    return 0;
}
