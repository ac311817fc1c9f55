/* SPDX-License-Identifier: MIT */
/* A wire that is cut again and again: nothing that was confirmed is lost, every callback comes
 * exactly once, every delivery can be settled. */
#include "common/base/clock.h"
#include "common/bus/consumer.h"
#include "common/bus/publisher.h"
#include "tests/support/broker.h"
#include "tests/support/tcp_proxy.h"
#include "tests/support/test.h"

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#define MESSAGES 3000
#define CUTS 12
#define CUT_EVERY_MS 150

struct sent {
    struct ends *ends;
    _Atomic int calls;
    _Atomic int rc;
};

struct seen {
    atomic_bool numbers[MESSAGES];
    atomic_uint deliveries;
};

static void on_end(void *arg, enum err_code rc)
{
    struct sent *sent = arg;
    atomic_fetch_add(&sent->calls, 1);
    atomic_store(&sent->rc, (int)rc);
    ends_note(sent->ends, rc);
}

static void on_delivery(void *arg, struct bus_delivery **take_delivery)
{
    struct seen *seen = arg;
    unsigned long number = strtoul((*take_delivery)->body.ptr, NULL, 10);
    assert_true(number < MESSAGES);
    atomic_store(&seen->numbers[number], true);
    atomic_fetch_add(&seen->deliveries, 1);
    bus_settle(take_delivery, BUS_ACK);
}

static void *cut_again_and_again(void *arg)
{
    for (int i = 0; i < CUTS; i++) {
        (void)usleep(CUT_EVERY_MS * 1000);
        tcp_proxy_cut(arg);
    }
    return NULL;
}

static unsigned publish_all(struct bus_publisher *pub, const char *queue, struct sent *sent)
{
    unsigned accepted = 0;
    for (unsigned i = 0; i < MESSAGES; i++) {
        struct err err = {0};
        char body[16];
        (void)snprintf(body, sizeof(body), "%u", i);
        const struct bus_message message = {.exchange = BUS_SUBMIT,
                                            .routing_key = queue,
                                            .body = sv_of(body),
                                            .declare_queue = true};
        if (!bus_publisher_wait_up(pub, soon()))
            fail_msg("the publisher does not come back");
        if (bus_publish(pub, &message, on_end, &sent[i], &err) == ERR_OK)
            accepted++;
        (void)usleep(400);
    }
    return accepted;
}

static void nothing_that_was_confirmed_is_lost_and_every_callback_comes_once(void **unused)
{
    (void)unused;
    static struct sent sent[MESSAGES];
    static struct seen seen;
    char queue[BUS_NAME_SIZE];
    pthread_t cutter;
    struct err err = {0};
    struct ends ends;
    struct bus_publisher *pub = NULL;
    struct bus_consumer *consumer = NULL;
    struct tcp_proxy *proxy = tcp_proxy_open(broker_host(), broker_port());
    struct bus_config cfg = broker_config(tcp_proxy_port(proxy));
    const struct bus_consumer_setup setup = {
        .queue = broker_queue(queue), .arg = &seen, .on_delivery = on_delivery};
    ends_init(&ends);
    for (unsigned i = 0; i < MESSAGES; i++)
        sent[i].ends = &ends;
    assert_ok(bus_publisher_open(&cfg, &pub, &err));
    assert_ok(bus_consumer_open(&cfg, &setup, &consumer, &err));
    bus_consumer_set_channels(consumer, 20);
    assert_int_equal(pthread_create(&cutter, NULL, cut_again_and_again, proxy), 0);
    unsigned accepted = publish_all(pub, queue, sent);
    assert_true(ends_wait(&ends, accepted));
    assert_int_equal(pthread_join(cutter, NULL), 0);
    assert_true(bus_publisher_wait_up(pub, soon()));
    assert_true(broker_wait_depth(pub, queue, 0));
    bus_consumer_free(consumer);
    assert_true(broker_wait_depth(pub, queue, 0));
    for (unsigned i = 0; i < MESSAGES; i++) {
        assert_true(sent[i].calls <= 1);
        if (sent[i].calls == 1 && sent[i].rc == ERR_OK)
            assert_true(seen.numbers[i]);
    }
    assert_true(ends.by_code[ERR_OK] > MESSAGES / 2);
    struct bus_stats stats;
    bus_publisher_stats(pub, &stats);
    print_message("%u accepted, %u confirmed, %u delivered, %u connections\n", accepted,
                  ends.by_code[ERR_OK], seen.deliveries, (unsigned)stats.connects);
    assert_int_equal(ends.total, accepted);
    assert_ok(bus_queue_delete(pub, queue, false, soon(), &err));
    bus_publisher_free(pub);
    tcp_proxy_free(proxy);
}

static void a_consumer_stops_soon_while_the_broker_is_mute(void **unused)
{
    (void)unused;
    char queue[BUS_NAME_SIZE];
    struct err err = {0};
    struct bus_publisher *pub = NULL;
    struct bus_consumer *consumer = NULL;
    struct tcp_proxy *proxy = tcp_proxy_open(broker_host(), broker_port());
    struct bus_config cfg = broker_config(tcp_proxy_port(proxy)), direct = broker_config(0);
    struct receiver *receiver = receiver_new();
    const struct bus_consumer_setup setup = receiver_setup(receiver, broker_queue(queue));
    assert_ok(bus_consumer_open(&cfg, &setup, &consumer, &err));
    assert_true(receiver_wait(receiver, &receiver->ups, 1));
    tcp_proxy_set(proxy, PROXY_HOLD);
    int64_t start = clock_mono_ms();
    bus_consumer_free(consumer);
    assert_true(clock_mono_ms() - start < 5000);
    receiver_free(receiver);
    tcp_proxy_free(proxy);
    assert_ok(bus_publisher_open(&direct, &pub, &err));
    assert_true(bus_publisher_wait_up(pub, soon()));
    assert_ok(bus_queue_delete(pub, queue, false, soon(), &err));
    bus_publisher_free(pub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_that_was_confirmed_is_lost_and_every_callback_comes_once),
        TEST(a_consumer_stops_soon_while_the_broker_is_mute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
