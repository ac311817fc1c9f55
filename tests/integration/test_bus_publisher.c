/* SPDX-License-Identifier: MIT */
#include "common/bus/publisher.h"

#include "common/base/clock.h"
#include "tests/support/broker.h"
#include "tests/support/tcp_proxy.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <unistd.h>

#define MANY 10000

static struct bus_publisher *open_up(const struct bus_config *cfg)
{
    struct err err = {0};
    struct bus_publisher *pub = NULL;
    assert_ok(bus_publisher_open(cfg, &pub, &err));
    assert_true(bus_publisher_wait_up(pub, soon()));
    return pub;
}

static struct bus_message message_to(const char *queue)
{
    return (struct bus_message){.exchange = BUS_SUBMIT,
                                .routing_key = queue,
                                .body = SV("{\"v\":1}"),
                                .message_id = "id",
                                .traceparent = "00-11-22-01",
                                .declare_queue = true};
}

/* 1, or 0 when so many are in flight that half of those sent so far have to end first. */
static unsigned publish_or_wait(struct bus_publisher *pub, const char *queue, struct ends *ends,
                                unsigned sent)
{
    struct err err = {0};
    struct bus_message message = message_to(queue);
    enum err_code rc = bus_publish(pub, &message, ends_note, ends, &err);
    if (rc == ERR_OK)
        return 1;
    assert_int_equal(rc, ERR_OVERLOADED);
    assert_true(ends_wait(ends, sent / 2));
    return 0;
}

static void every_message_is_confirmed_once_and_is_in_its_queue(void **unused)
{
    (void)unused;
    struct bus_config cfg = broker_config(0);
    AUTO(bus_publisher_free) struct bus_publisher *pub = open_up(&cfg);
    struct ends ends;
    char queue[BUS_NAME_SIZE];
    broker_queue(queue);
    ends_init(&ends);
    for (unsigned sent = 0; sent < MANY;)
        sent += publish_or_wait(pub, queue, &ends, sent);
    assert_true(ends_wait(&ends, MANY));
    assert_int_equal(ends.by_code[ERR_OK], MANY);
    assert_true(broker_wait_depth(pub, queue, MANY));
    struct bus_stats stats;
    bus_publisher_stats(pub, &stats);
    assert_int_equal(stats.published, MANY);
    assert_int_equal(stats.confirmed, MANY);
    struct err err = {0};
    assert_ok(bus_queue_delete(pub, queue, false, soon(), &err));
}

static void a_message_that_nobody_routes_is_kept_by_the_alternate_queue(void **unused)
{
    (void)unused;
    struct bus_config cfg = broker_config(0);
    AUTO(bus_publisher_free) struct bus_publisher *pub = open_up(&cfg);
    struct err err = {0};
    uint32_t before = 0;
    char queue[BUS_NAME_SIZE];
    struct bus_message message = message_to(broker_queue(queue));
    message.declare_queue = false;
    assert_ok(bus_queue_depth(pub, "sluice.alternate", soon(), &before, NULL, &err));
    assert_ok(bus_publish_wait(pub, &message, soon(), &err));
    assert_true(broker_wait_depth_least(pub, "sluice.alternate", before + 1));
}

static void a_queue_with_other_arguments_is_used_as_it_is(void **unused)
{
    (void)unused;
    struct bus_config cfg = broker_config(0);
    AUTO(bus_publisher_free) struct bus_publisher *pub = open_up(&cfg);
    struct err err = {0};
    char queue[BUS_NAME_SIZE];
    assert_ok(bus_queue_declare(pub, broker_queue(queue), BUS_CLASSIC, soon(), &err));
    struct bus_message message = message_to(queue);
    message.queue_type = BUS_QUORUM;
    assert_ok(bus_publish_wait(pub, &message, soon(), &err));
    assert_true(broker_wait_depth(pub, queue, 1));
    assert_ok(bus_queue_delete(pub, queue, false, soon(), &err));
}

static void a_queue_is_deleted_only_if_it_may_be(void **unused)
{
    (void)unused;
    struct bus_config cfg = broker_config(0);
    AUTO(bus_publisher_free) struct bus_publisher *pub = open_up(&cfg);
    struct err err = {0};
    char queue[BUS_NAME_SIZE];
    struct bus_message message = message_to(broker_queue(queue));
    message.queue_type = BUS_CLASSIC;
    assert_code(bus_queue_depth(pub, queue, soon(), NULL, NULL, &err), ERR_NOT_FOUND);
    err_clear(&err);
    assert_ok(bus_queue_delete(pub, queue, true, soon(), &err));
    assert_ok(bus_publish_wait(pub, &message, soon(), &err));
    assert_code(bus_queue_delete(pub, queue, true, soon(), &err), ERR_IN_USE);
    err_clear(&err);
    assert_ok(bus_queue_delete(pub, queue, false, soon(), &err));
    /* And it is declared anew for the next message. */
    assert_ok(bus_publish_wait(pub, &message, soon(), &err));
    assert_true(broker_wait_depth(pub, queue, 1));
    assert_ok(bus_queue_delete(pub, queue, false, soon(), &err));
}

static void an_empty_quorum_queue_is_deleted_and_a_full_one_is_kept(void **unused)
{
    (void)unused;
    struct bus_config cfg = broker_config(0);
    AUTO(bus_publisher_free) struct bus_publisher *pub = open_up(&cfg);
    struct err err = {0};
    char queue[BUS_NAME_SIZE];
    struct bus_message message = message_to(broker_queue(queue));
    assert_ok(bus_publish_wait(pub, &message, soon(), &err));
    assert_true(broker_wait_depth(pub, queue, 1));
    assert_code(bus_queue_delete(pub, queue, true, soon(), &err), ERR_IN_USE);
    err_clear(&err);
    assert_ok(bus_queue_delete(pub, queue, false, soon(), &err));
    assert_ok(bus_queue_declare(pub, queue, BUS_QUORUM, soon(), &err));
    assert_ok(bus_queue_delete(pub, queue, true, soon(), &err));
    assert_code(bus_queue_depth(pub, queue, soon(), NULL, NULL, &err), ERR_NOT_FOUND);
}

static void on_up(void *arg)
{
    ends_note(arg, ERR_OK);
}

static void what_was_not_confirmed_when_the_connection_broke_is_told_so(void **unused)
{
    (void)unused;
    struct tcp_proxy *proxy = tcp_proxy_open(broker_host(), broker_port());
    struct bus_config cfg = broker_config(tcp_proxy_port(proxy));
    AUTO(bus_publisher_free) struct bus_publisher *pub = open_up(&cfg);
    struct err err = {0};
    struct ends ends, ups;
    char queue[BUS_NAME_SIZE];
    struct bus_message message = message_to(broker_queue(queue));
    ends_init(&ends);
    ends_init(&ups);
    bus_publisher_on_up(pub, on_up, &ups);
    assert_true(ends_wait(&ups, 1));
    assert_ok(bus_publish_wait(pub, &message, soon(), &err));
    tcp_proxy_set(proxy, PROXY_HOLD);
    for (int i = 0; i < 10; i++)
        assert_ok(bus_publish(pub, &message, ends_note, &ends, &err));
    tcp_proxy_set(proxy, PROXY_SHUT);
    assert_true(ends_wait(&ends, 10));
    assert_int_equal(ends.by_code[ERR_BROKER_AWAY], 10);
    assert_code(bus_publish(pub, &message, ends_note, &ends, &err), ERR_BROKER_AWAY);
    err_clear(&err);
    assert_code(bus_queue_depth(pub, queue, soon(), NULL, NULL, &err), ERR_BROKER_AWAY);
    err_clear(&err);
    tcp_proxy_set(proxy, PROXY_PASS);
    assert_true(bus_publisher_wait_up(pub, soon()));
    assert_true(ends_wait(&ups, 2));
    assert_ok(bus_publish_wait(pub, &message, soon(), &err));
    assert_ok(bus_queue_delete(pub, queue, false, soon(), &err));
    assert_int_equal(ends.total, 10);
    bus_publisher_free(TAKE(pub));
    tcp_proxy_free(proxy);
}

static void a_silent_broker_is_noticed_by_missing_heartbeats(void **unused)
{
    (void)unused;
    struct tcp_proxy *proxy = tcp_proxy_open(broker_host(), broker_port());
    struct bus_config cfg = broker_config(tcp_proxy_port(proxy));
    cfg.heartbeat_s = 1;
    cfg.connect_timeout_ms = 5000;
    AUTO(bus_publisher_free) struct bus_publisher *pub = open_up(&cfg);
    struct err err = {0};
    struct ends ends;
    char queue[BUS_NAME_SIZE];
    struct bus_message message = message_to(broker_queue(queue));
    message.declare_queue = false;
    ends_init(&ends);
    int64_t start = clock_mono_ms();
    tcp_proxy_set(proxy, PROXY_HOLD);
    assert_ok(bus_publish(pub, &message, ends_note, &ends, &err));
    assert_true(ends_wait(&ends, 1));
    assert_int_equal(ends.by_code[ERR_BROKER_AWAY], 1);
    assert_true(clock_mono_ms() - start < 15000);
    bus_publisher_free(TAKE(pub));
    tcp_proxy_free(proxy);
}

static void limits_of_number_size_and_time_are_kept(void **unused)
{
    (void)unused;
    struct tcp_proxy *proxy = tcp_proxy_open(broker_host(), broker_port());
    struct bus_config cfg = broker_config(tcp_proxy_port(proxy));
    cfg.in_flight_max = 4;
    cfg.confirm_timeout_ms = 1500;
    AUTO(bus_publisher_free) struct bus_publisher *pub = open_up(&cfg);
    struct err err = {0};
    struct ends ends;
    char queue[BUS_NAME_SIZE];
    struct bus_message message = message_to(broker_queue(queue));
    message.declare_queue = false;
    ends_init(&ends);
    tcp_proxy_set(proxy, PROXY_HOLD);
    for (int i = 0; i < 4; i++)
        assert_ok(bus_publish(pub, &message, ends_note, &ends, &err));
    assert_code(bus_publish(pub, &message, ends_note, &ends, &err), ERR_OVERLOADED);
    err_clear(&err);
    assert_true(ends_wait(&ends, 4));
    assert_int_equal(ends.by_code[ERR_TIMEOUT], 4);
    assert_code(bus_publish_wait(pub, &message, clock_mono_ms() + 50, &err), ERR_TIMEOUT);
    err_clear(&err);
    assert_code(bus_queue_depth(pub, queue, clock_mono_ms() + 50, NULL, NULL, &err), ERR_TIMEOUT);
    err_clear(&err);
    message.body.len = BUS_BODY_MAX + 1;
    assert_code(bus_publish(pub, &message, ends_note, &ends, &err), ERR_TOO_LARGE);
    int64_t start = clock_mono_ms();
    bus_publisher_free(TAKE(pub));
    assert_true(clock_mono_ms() - start < 5000);
    tcp_proxy_free(proxy);
}

static void stop_at_once(struct tcp_proxy *proxy, enum tcp_proxy_mode mode)
{
    struct err err = {0};
    struct bus_publisher *pub = NULL;
    struct bus_config cfg = broker_config(tcp_proxy_port(proxy));
    tcp_proxy_set(proxy, mode);
    assert_ok(bus_publisher_open(&cfg, &pub, &err));
    assert_false(bus_publisher_wait_up(pub, clock_mono_ms() + 300));
    assert_int_equal(bus_publisher_state(pub), BUS_DOWN);
    int64_t start = clock_mono_ms();
    bus_publisher_free(pub);
    assert_true(clock_mono_ms() - start < 5000);
}

static void it_stops_at_once_while_the_broker_is_away_or_mute(void **unused)
{
    (void)unused;
    struct tcp_proxy *proxy = tcp_proxy_open(broker_host(), broker_port());
    stop_at_once(proxy, PROXY_HOLD);
    stop_at_once(proxy, PROXY_SHUT);
    tcp_proxy_free(proxy);
}

/* So many of a hundred messages were confirmed although the publisher was told to stop. */
static unsigned stop_with_a_hundred_in_flight(const char *queue)
{
    struct bus_config cfg = broker_config(0);
    struct bus_publisher *pub = open_up(&cfg);
    struct err err = {0};
    struct ends ends;
    struct bus_message message = message_to(queue);
    message.queue_type = BUS_CLASSIC;
    ends_init(&ends);
    assert_ok(bus_queue_declare(pub, queue, BUS_CLASSIC, soon(), &err));
    for (int i = 0; i < 100; i++)
        assert_ok(bus_publish(pub, &message, ends_note, &ends, &err));
    bus_publisher_free(pub);
    assert_int_equal(ends.total, 100);
    pub = open_up(&cfg);
    assert_true(broker_wait_depth_least(pub, queue, ends.by_code[ERR_OK]));
    assert_ok(bus_queue_delete(pub, queue, false, soon(), &err));
    bus_publisher_free(pub);
    return ends.by_code[ERR_OK];
}

/* It waits for the broker as long as a stop may take; a busy machine may need longer. */
static void stopping_lets_what_is_in_flight_be_confirmed(void **unused)
{
    (void)unused;
    char queue[BUS_NAME_SIZE];
    unsigned confirmed = 0;
    broker_queue(queue);
    for (int tries = 0; confirmed < 100 && tries < 10; tries++)
        confirmed = stop_with_a_hundred_in_flight(queue);
    assert_int_equal(confirmed, 100);
}

/* True as soon as it has come up more often than so. */
static bool came_up_again(struct bus_publisher *pub, uint64_t connects)
{
    int64_t deadline = soon();
    struct bus_stats stats = {0};
    for (; stats.connects <= connects && clock_mono_ms() < deadline; (void)usleep(5000))
        bus_publisher_stats(pub, &stats);
    /* It is counted before it is up. */
    return stats.connects > connects && bus_publisher_wait_up(pub, deadline);
}

/* The same broker by two ways, of which one is open at a time, and one that leads nowhere. */
static void of_several_nodes_each_is_tried_until_one_answers(void **unused)
{
    (void)unused;
    struct tcp_proxy *ways[] = {tcp_proxy_open(broker_host(), broker_port()),
                                tcp_proxy_open(broker_host(), broker_port())};
    struct bus_config cfg = broker_config(0);
    char hosts[200], queue[BUS_NAME_SIZE];
    (void)snprintf(hosts, sizeof(hosts), "%s:1, %s:%d, %s:%d", broker_host(), broker_host(),
                   tcp_proxy_port(ways[0]), broker_host(), tcp_proxy_port(ways[1]));
    cfg.host = hosts;
    tcp_proxy_set(ways[1], PROXY_SHUT);
    AUTO(bus_publisher_free) struct bus_publisher *pub = open_up(&cfg);
    struct bus_message message = message_to(broker_queue(queue));
    for (uint64_t at = 0; at < 4; at++) {
        struct err err = {0};
        assert_ok(bus_publish_wait(pub, &message, soon(), &err));
        tcp_proxy_set(ways[(at + 1) % 2], PROXY_PASS);
        tcp_proxy_set(ways[at % 2], PROXY_SHUT);
        assert_true(came_up_again(pub, at + 1));
    }
    bus_publisher_free(TAKE(pub));
    tcp_proxy_free(ways[0]);
    tcp_proxy_free(ways[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_message_is_confirmed_once_and_is_in_its_queue),
        TEST(a_message_that_nobody_routes_is_kept_by_the_alternate_queue),
        TEST(a_queue_with_other_arguments_is_used_as_it_is),
        TEST(a_queue_is_deleted_only_if_it_may_be),
        TEST(an_empty_quorum_queue_is_deleted_and_a_full_one_is_kept),
        TEST(what_was_not_confirmed_when_the_connection_broke_is_told_so),
        TEST(a_silent_broker_is_noticed_by_missing_heartbeats),
        TEST(of_several_nodes_each_is_tried_until_one_answers),
        TEST(limits_of_number_size_and_time_are_kept),
        TEST(it_stops_at_once_while_the_broker_is_away_or_mute),
        TEST(stopping_lets_what_is_in_flight_be_confirmed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
