/* SPDX-License-Identifier: MIT */
#include "common/bus/consumer.h"

#include "common/base/clock.h"
#include "tests/support/broker.h"
#include "tests/support/tcp_proxy.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <unistd.h>

static struct bus_publisher *pub; /* straight to the broker, for all tests */

static int open_publisher(void **unused)
{
    (void)unused;
    pub = broker_publisher();
    return pub ? 0 : -1;
}

static int close_publisher(void **unused)
{
    (void)unused;
    bus_publisher_free(TAKE(pub));
    return 0;
}

static struct bus_consumer *open_consumer(const struct bus_consumer_setup *setup, int port)
{
    struct err err = {0};
    struct bus_consumer *consumer = NULL;
    struct bus_config cfg = broker_config(port);
    assert_ok(bus_consumer_open(&cfg, setup, &consumer, &err));
    return consumer;
}

static void a_queue_is_held_while_its_consumer_lives(void **unused)
{
    (void)unused;
    char inbox[BUS_NAME_SIZE];
    bool held = true;
    struct err err = {0};
    struct receiver *receiver = receiver_new();
    struct bus_consumer_setup setup = receiver_setup(receiver, NULL);
    const char *keys[] = {broker_name("worker", inbox)};
    setup.inbox = (struct bus_inbox){BUS_COMMAND, inbox, keys, 1};
    assert_ok(bus_queue_held(pub, inbox, soon(), &held, &err));
    assert_false(held);
    int64_t start = clock_boot_ms();
    struct bus_consumer *consumer = open_consumer(&setup, 0);
    assert_true(receiver_wait(receiver, &receiver->ups, 1));
    assert_ok(bus_queue_held(pub, inbox, soon(), &held, &err));
    assert_true(held);
    assert_true(bus_consumer_last_frame_ms(consumer) >= start);
    bus_consumer_free(consumer);
    assert_ok(bus_queue_held(pub, inbox, soon(), &held, &err));
    assert_false(held);
    receiver_free(receiver);
}

static void a_second_consumer_waits_until_the_inbox_is_free(void **unused)
{
    (void)unused;
    char inbox[BUS_NAME_SIZE];
    struct receiver *receivers[2] = {receiver_new(), receiver_new()};
    struct bus_consumer *consumers[2];
    const char *keys[] = {broker_name("worker", inbox)};
    for (int i = 0; i < 2; i++) {
        struct bus_consumer_setup setup = receiver_setup(receivers[i], NULL);
        setup.inbox = (struct bus_inbox){BUS_COMMAND, inbox, keys, 1};
        consumers[i] = open_consumer(&setup, 0);
        if (i == 0)
            assert_true(receiver_wait(receivers[0], &receivers[0]->ups, 1));
    }
    (void)usleep(300 * 1000); /* it may try, and has to fail */
    assert_int_equal(bus_consumer_state(consumers[1]), BUS_DOWN);
    assert_int_equal(bus_consumer_last_frame_ms(consumers[1]), 0);
    bus_consumer_free(consumers[0]);
    assert_true(receiver_wait(receivers[1], &receivers[1]->ups, 1));
    bus_consumer_free(consumers[1]);
    receiver_free(receivers[0]);
    receiver_free(receivers[1]);
}

static void heartbeats_keep_an_idle_connection_and_are_a_sign_of_life(void **unused)
{
    (void)unused;
    char inbox[BUS_NAME_SIZE];
    struct err err = {0};
    struct tcp_proxy *proxy = tcp_proxy_open(broker_host(), broker_port());
    struct bus_config cfg = broker_config(tcp_proxy_port(proxy));
    cfg.heartbeat_s = 1;
    struct receiver *receiver = receiver_new();
    struct bus_consumer_setup setup = receiver_setup(receiver, NULL);
    const char *keys[] = {broker_name("worker", inbox)};
    setup.inbox = (struct bus_inbox){BUS_COMMAND, inbox, keys, 1};
    struct bus_consumer *consumer = NULL;
    assert_ok(bus_consumer_open(&cfg, &setup, &consumer, &err));
    assert_true(receiver_wait(receiver, &receiver->ups, 1));
    int64_t start = clock_boot_ms();
    while (bus_consumer_last_frame_ms(consumer) < start + 3000 && clock_boot_ms() < start + WAIT_MS)
        (void)usleep(50 * 1000);
    assert_true(bus_consumer_last_frame_ms(consumer) >= start + 3000);
    assert_int_equal(bus_consumer_generation(consumer), 1);
    tcp_proxy_set(proxy, PROXY_HOLD);
    int64_t held = clock_boot_ms();
    assert_true(receiver_wait(receiver, &receiver->downs, 1));
    /* What had come through by then may have been read a little later. */
    assert_true(bus_consumer_last_frame_ms(consumer) < held + 700);
    assert_true(clock_boot_ms() - held < 10000);
    bus_consumer_free(consumer);
    receiver_free(receiver);
    tcp_proxy_free(proxy);
}

static int64_t next_frame(struct bus_consumer *consumer, int64_t last)
{
    int64_t until = clock_boot_ms() + WAIT_MS;
    while (bus_consumer_last_frame_ms(consumer) == last && clock_boot_ms() < until)
        (void)usleep(5 * 1000);
    return bus_consumer_last_frame_ms(consumer);
}

static void an_answer_that_comes_late_counts_from_its_question(void **unused)
{
    (void)unused;
    const int64_t probe_ms = 2000;
    char inbox[BUS_NAME_SIZE];
    struct err err = {0};
    struct tcp_proxy *proxy = tcp_proxy_open(broker_host(), broker_port());
    struct bus_config cfg = broker_config(tcp_proxy_port(proxy));
    struct receiver *receiver = receiver_new();
    struct bus_consumer_setup setup = receiver_setup(receiver, NULL);
    const char *keys[] = {broker_name("worker", inbox)};
    setup.inbox = (struct bus_inbox){BUS_COMMAND, inbox, keys, 1};
    setup.probe_ms = probe_ms;
    struct bus_consumer *consumer = NULL;
    assert_ok(bus_consumer_open(&cfg, &setup, &consumer, &err));
    assert_true(receiver_wait(receiver, &receiver->ups, 1));
    int64_t first = next_frame(consumer, bus_consumer_last_frame_ms(consumer));
    tcp_proxy_set(proxy, PROXY_HOLD);
    while (clock_boot_ms() < first + probe_ms + 1500) /* the next question is on its way */
        (void)usleep(10 * 1000);
    int64_t released = clock_boot_ms();
    assert_int_equal(bus_consumer_last_frame_ms(consumer), first);
    tcp_proxy_set(proxy, PROXY_PASS);
    int64_t second = next_frame(consumer, first);
    assert_true(second > first);
    assert_true(second < released);
    bus_consumer_free(consumer);
    receiver_free(receiver);
    tcp_proxy_free(proxy);
}

static bool is_held(const char *inbox)
{
    bool held = false;
    struct err err = {0};
    assert_ok(bus_queue_held(pub, inbox, soon(), &held, &err));
    return held;
}

static void a_deleted_inbox_is_made_again(void **unused)
{
    (void)unused;
    char inbox[BUS_NAME_SIZE], arguments[BUS_NAME_SIZE + 64];
    bool held = false;
    struct receiver *receiver = receiver_new();
    struct bus_consumer_setup setup = receiver_setup(receiver, NULL);
    const char *keys[] = {broker_name("worker", inbox)};
    setup.inbox = (struct bus_inbox){BUS_COMMAND, inbox, keys, 1};
    struct bus_consumer *consumer = open_consumer(&setup, 0);
    assert_true(receiver_wait(receiver, &receiver->ups, 1));
    (void)snprintf(arguments, sizeof(arguments), "delete_queue %s -p sluice", inbox);
    assert_true(broker_control(arguments));
    for (int64_t deadline = soon(); !held && clock_mono_ms() < deadline;)
        held = is_held(inbox);
    assert_true(held);
    bus_consumer_free(consumer);
    receiver_free(receiver);
}

static void send_to(enum bus_exchange exchange, const char *key)
{
    struct err err = {0};
    const struct bus_message message = {
        .exchange = exchange, .routing_key = key, .body = SV("{}"), .transient = true};
    assert_ok(bus_publish_wait(pub, &message, soon(), &err));
}

static void commands_come_by_each_key_of_the_inbox(void **unused)
{
    (void)unused;
    char inbox[BUS_NAME_SIZE], id[BUS_NAME_SIZE], group[BUS_NAME_SIZE];
    struct receiver *receiver = receiver_new();
    struct bus_consumer_setup setup = receiver_setup(receiver, NULL);
    const char *keys[] = {broker_name("id", id), broker_name("queue.q", group), "all"};
    setup.inbox = (struct bus_inbox){BUS_COMMAND, bus_worker_queue(id, inbox), keys, 3};
    struct bus_consumer *consumer = open_consumer(&setup, 0);
    assert_true(receiver_wait(receiver, &receiver->ups, 1));
    for (unsigned i = 0; i < 3; i++) {
        send_to(BUS_COMMAND, keys[i]);
        assert_true(receiver_wait(receiver, &receiver->messages, i + 1));
        assert_string_equal(receiver->last_key, keys[i]);
    }
    bus_consumer_free(consumer);
    receiver_free(receiver);
}

static void a_listener_hears_the_events_of_its_pattern(void **unused)
{
    (void)unused;
    char tenant[BUS_NAME_SIZE], pattern[BUS_NAME_SIZE + 8], key[BUS_NAME_SIZE + 32];
    struct receiver *receiver = receiver_new();
    struct bus_consumer_setup setup = receiver_setup(receiver, NULL);
    (void)snprintf(pattern, sizeof(pattern), "%s.#", broker_name("t", tenant));
    const char *keys[] = {pattern};
    setup.inbox = (struct bus_inbox){BUS_EVENTS, NULL, keys, 1};
    struct bus_consumer *consumer = open_consumer(&setup, 0);
    assert_true(receiver_wait(receiver, &receiver->ups, 1));
    (void)snprintf(key, sizeof(key), "%s.finished.job", tenant);
    send_to(BUS_EVENTS, "another.finished.job");
    send_to(BUS_EVENTS, key);
    assert_true(receiver_wait(receiver, &receiver->messages, 1));
    assert_string_equal(receiver->last_key, key);
    bus_consumer_free(consumer);
    receiver_free(receiver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_queue_is_held_while_its_consumer_lives),
        TEST(a_second_consumer_waits_until_the_inbox_is_free),
        TEST(heartbeats_keep_an_idle_connection_and_are_a_sign_of_life),
        TEST(an_answer_that_comes_late_counts_from_its_question),
        TEST(a_deleted_inbox_is_made_again),
        TEST(commands_come_by_each_key_of_the_inbox),
        TEST(a_listener_hears_the_events_of_its_pattern),
    };
    return cmocka_run_group_tests(tests, open_publisher, close_publisher);
}
