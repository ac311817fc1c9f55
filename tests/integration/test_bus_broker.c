/* SPDX-License-Identifier: MIT */
/* What the broker does to all its clients; nothing else may run beside this one. */
#include "common/base/clock.h"
#include "common/bus/consumer.h"
#include "common/bus/publisher.h"
#include "tests/support/broker.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <unistd.h>

static struct bus_consumer *open_consumer(struct receiver *receiver, const char *queue)
{
    struct err err = {0};
    struct bus_consumer *consumer = NULL;
    struct bus_config cfg = broker_config(0);
    struct bus_consumer_setup setup = receiver_setup(receiver, queue);
    assert_ok(bus_consumer_open(&cfg, &setup, &consumer, &err));
    bus_consumer_set_channels(consumer, 1);
    return consumer;
}

static struct bus_message message_to(const char *queue)
{
    return (struct bus_message){
        .exchange = BUS_SUBMIT, .routing_key = queue, .body = SV("x"), .declare_queue = true};
}

static void wait_state(struct bus_publisher *pub, enum bus_state wanted)
{
    int64_t deadline = soon();
    while (bus_publisher_state(pub) != wanted && clock_mono_ms() < deadline)
        (void)usleep(10 * 1000);
    assert_int_equal(bus_publisher_state(pub), wanted);
}

static int forget_alarm(void **unused)
{
    (void)unused;
    return broker_control("set_vm_memory_high_watermark 0.6") ? 0 : -1;
}

static void a_broker_that_is_short_of_memory_refuses_messages_but_takes_settlements(void **unused)
{
    (void)unused;
    char queue[BUS_NAME_SIZE];
    struct err err = {0};
    struct ends ends;
    struct bus_publisher *pub = broker_publisher();
    assert_non_null(pub);
    struct bus_message message = message_to(broker_queue(queue));
    struct receiver *receiver = receiver_new();
    ends_init(&ends);
    assert_ok(bus_publish_wait(pub, &message, soon(), &err));
    struct bus_consumer *consumer = open_consumer(receiver, queue);
    assert_true(receiver_wait(receiver, &receiver->held_count, 1));
    assert_true(broker_control("set_vm_memory_high_watermark 0.00001"));
    /* The alarm stops a connection when it publishes next. */
    assert_ok(bus_publish(pub, &message, ends_note, &ends, &err));
    err_clear(&err);
    wait_state(pub, BUS_BLOCKED);
    assert_code(bus_publish(pub, &message, NULL, NULL, &err), ERR_BROKER_BLOCKED);
    err_clear(&err);
    assert_code(bus_queue_depth(pub, queue, soon(), NULL, NULL, &err), ERR_BROKER_BLOCKED);
    err_clear(&err);
    struct bus_delivery *delivery = receiver_take(receiver);
    bus_settle(&delivery, BUS_ACK);
    assert_int_equal(forget_alarm(NULL), 0);
    assert_true(bus_publisher_wait_up(pub, soon()));
    assert_ok(bus_publish_wait(pub, &message, soon(), &err));
    struct bus_stats stats;
    bus_publisher_stats(pub, &stats);
    assert_true(stats.blocked >= 1);
    assert_true(receiver_wait(receiver, &receiver->held_count, 1));
    assert_int_equal(receiver->lost, 0); /* the settlement got through */
    bus_consumer_free(consumer);
    receiver_free(receiver);
    assert_ok(bus_queue_delete(pub, queue, false, soon(), &err));
    bus_publisher_free(pub);
}

#define SET_PATIENCE                                                                               \
    "eval 'application:set_env(rabbit, consumer_timeout, %d), "                                    \
    "application:set_env(rabbit, channel_tick_interval, %d).'"

static int forget_patience(void **unused)
{
    (void)unused;
    char arguments[256];
    (void)snprintf(arguments, sizeof(arguments), SET_PATIENCE, 1800000, 60000);
    return broker_control(arguments) ? 0 : -1;
}

static void a_delivery_held_too_long_costs_its_channel_only(void **unused)
{
    (void)unused;
    char queue[BUS_NAME_SIZE], arguments[256];
    struct err err = {0};
    struct bus_publisher *pub = broker_publisher();
    assert_non_null(pub);
    struct bus_message message = message_to(broker_queue(queue));
    struct receiver *receiver = receiver_new();
    (void)snprintf(arguments, sizeof(arguments), SET_PATIENCE, 3000, 300);
    assert_true(broker_control(arguments));
    struct bus_consumer *consumer = open_consumer(receiver, queue);
    assert_ok(bus_publish_wait(pub, &message, soon(), &err));
    assert_true(receiver_wait(receiver, &receiver->held_count, 1));
    assert_true(receiver_wait(receiver, &receiver->lost, 1));
    /* The message comes again, on a channel of the same connection. */
    assert_true(receiver_wait(receiver, &receiver->held_count, 2));
    assert_int_equal(bus_consumer_generation(consumer), 1);
    assert_int_equal(receiver->downs, 0);
    assert_true(receiver->held[1]->redelivered);
    struct bus_delivery *first = receiver_take(receiver);
    struct bus_delivery *second = receiver_take(receiver);
    bus_settle(&second, BUS_ACK);
    bus_settle(&first, BUS_ACK);
    struct bus_stats stats;
    bus_consumer_stats(consumer, &stats);
    assert_int_equal(stats.deliveries_lost, 1);
    assert_int_equal(stats.channels_closed, 1);
    bus_consumer_free(consumer);
    assert_true(broker_wait_depth(pub, queue, 0));
    receiver_free(receiver);
    assert_ok(bus_queue_delete(pub, queue, false, soon(), &err));
    bus_publisher_free(pub);
}

static void an_exchange_that_was_deleted_is_declared_again(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct bus_publisher *pub = broker_publisher();
    assert_non_null(pub);
    const struct bus_message message = {
        .exchange = BUS_EVENTS, .routing_key = "t.e.j", .body = SV("{}"), .transient = true};
    assert_ok(bus_publish_wait(pub, &message, soon(), &err));
    assert_true(
        broker_control("eval 'rabbit_exchange:delete(rabbit_misc:r(<<\"sluice\">>, exchange, "
                       "<<\"sluice.events\">>), false, <<\"test\">>).'"));
    assert_code(bus_publish_wait(pub, &message, soon(), &err), ERR_BROKER_AWAY);
    err_clear(&err);
    assert_true(bus_publisher_wait_up(pub, soon()));
    assert_ok(bus_publish_wait(pub, &message, soon(), &err));
    bus_publisher_free(pub);
}

static void a_broker_that_restarts_is_found_again_with_its_messages(void **unused)
{
    (void)unused;
    char queue[BUS_NAME_SIZE];
    struct err err = {0};
    struct bus_publisher *pub = broker_publisher();
    assert_non_null(pub);
    struct bus_message message = message_to(broker_queue(queue));
    struct receiver *receiver = receiver_new();
    struct bus_consumer *consumer = open_consumer(receiver, queue);
    for (int i = 0; i < 3; i++)
        assert_ok(bus_publish_wait(pub, &message, soon(), &err));
    assert_true(receiver_wait(receiver, &receiver->held_count, 1));
    assert_true(broker_control("stop_app"));
    assert_true(receiver_wait(receiver, &receiver->lost, 1));
    wait_state(pub, BUS_DOWN);
    assert_true(broker_control("start_app"));
    assert_true(bus_publisher_wait_up(pub, soon()));
    assert_true(receiver_wait(receiver, &receiver->ups, 2));
    assert_true(receiver_wait(receiver, &receiver->held_count, 2));
    (void)pthread_mutex_lock(&receiver->lock);
    receiver->settle_at_once = true;
    (void)pthread_mutex_unlock(&receiver->lock);
    for (int i = 0; i < 2; i++) {
        struct bus_delivery *delivery = receiver_take(receiver);
        bus_settle(&delivery, BUS_ACK);
    }
    assert_true(receiver_wait(receiver, &receiver->total, 4));
    bus_consumer_free(consumer);
    assert_true(broker_wait_depth(pub, queue, 0));
    receiver_free(receiver);
    assert_ok(bus_queue_delete(pub, queue, false, soon(), &err));
    bus_publisher_free(pub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(
            a_broker_that_is_short_of_memory_refuses_messages_but_takes_settlements, forget_alarm),
        cmocka_unit_test_teardown(a_delivery_held_too_long_costs_its_channel_only, forget_patience),
        TEST(an_exchange_that_was_deleted_is_declared_again),
        TEST(a_broker_that_restarts_is_found_again_with_its_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
