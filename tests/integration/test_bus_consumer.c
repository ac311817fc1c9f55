/* SPDX-License-Identifier: MIT */
#include "common/bus/consumer.h"

#include "common/base/clock.h"
#include "tests/support/broker.h"
#include "tests/support/tcp_proxy.h"
#include "tests/support/test.h"

#include <stdatomic.h>
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

static void publish(const char *queue, const char *body)
{
    struct err err = {0};
    const struct bus_message message = {.exchange = BUS_SUBMIT,
                                        .routing_key = queue,
                                        .body = sv_of(body),
                                        .message_id = body,
                                        .traceparent = "00-11-22-01",
                                        .declare_queue = true};
    assert_ok(bus_publish_wait(pub, &message, soon(), &err));
}

static void drop(const char *queue)
{
    struct err err = {0};
    assert_ok(bus_queue_delete(pub, queue, false, soon(), &err));
}

static struct bus_consumer *open_consumer(const struct bus_consumer_setup *setup, int port)
{
    struct err err = {0};
    struct bus_consumer *consumer = NULL;
    struct bus_config cfg = broker_config(port);
    assert_ok(bus_consumer_open(&cfg, setup, &consumer, &err));
    return consumer;
}

static void settle(struct receiver *receiver, enum bus_settle how)
{
    struct bus_delivery *delivery = receiver_take(receiver);
    assert_non_null(delivery);
    bus_settle(&delivery, how);
}

static void a_delivery_tells_what_was_published(void **unused)
{
    (void)unused;
    char queue[BUS_NAME_SIZE];
    struct receiver *receiver = receiver_new();
    struct bus_consumer_setup setup = receiver_setup(receiver, broker_queue(queue));
    struct bus_consumer *consumer = open_consumer(&setup, 0);
    publish(queue, "{\"n\":1}");
    bus_consumer_set_channels(consumer, 1);
    struct bus_delivery *delivery = receiver_take(receiver);
    assert_non_null(delivery);
    assert_true(sv_is(delivery->body, "{\"n\":1}"));
    assert_string_equal(delivery->message_id, "{\"n\":1}");
    assert_string_equal(delivery->traceparent, "00-11-22-01");
    assert_string_equal(delivery->content_type, "application/json");
    assert_string_equal(delivery->routing_key, queue);
    assert_false(delivery->redelivered);
    assert_int_equal(delivery->generation, bus_consumer_generation(consumer));
    bus_settle(&delivery, BUS_ACK);
    assert_null(delivery);
    bus_consumer_free(consumer);
    assert_true(broker_wait_depth(pub, queue, 0));
    receiver_free(receiver);
    drop(queue);
}

static void what_is_put_back_comes_again_counted_and_what_is_rejected_is_dead(void **unused)
{
    (void)unused;
    char queue[BUS_NAME_SIZE];
    uint32_t dead = 0;
    struct err err = {0};
    struct receiver *receiver = receiver_new();
    struct bus_consumer_setup setup = receiver_setup(receiver, broker_queue(queue));
    struct bus_consumer *consumer = open_consumer(&setup, 0);
    assert_ok(bus_queue_depth(pub, "sluice.dead", soon(), &dead, NULL, &err));
    publish(queue, "x");
    bus_consumer_set_channels(consumer, 1);
    settle(receiver, BUS_REQUEUE);
    struct bus_delivery *again = receiver_take(receiver);
    assert_non_null(again);
    assert_true(again->redelivered);
    assert_int_equal(again->delivery_count, 1);
    bus_settle(&again, BUS_REJECT);
    assert_true(broker_wait_depth_least(pub, "sluice.dead", dead + 1));
    bus_consumer_free(consumer);
    receiver_free(receiver);
    drop(queue);
}

static void as_many_deliveries_are_held_as_there_are_channels(void **unused)
{
    (void)unused;
    char queue[BUS_NAME_SIZE];
    struct receiver *receiver = receiver_new();
    struct bus_consumer_setup setup = receiver_setup(receiver, broker_queue(queue));
    struct bus_consumer *consumer = open_consumer(&setup, 0);
    for (int i = 0; i < 10; i++)
        publish(queue, "x");
    bus_consumer_set_channels(consumer, 3);
    assert_true(receiver_wait(receiver, &receiver->held_count, 3));
    assert_true(broker_wait_depth(pub, queue, 7));
    bus_consumer_set_channels(consumer, 5);
    assert_true(receiver_wait(receiver, &receiver->held_count, 5));
    /* Held ones stay; settled ones are not followed by others until there are fewer than 2. */
    bus_consumer_set_channels(consumer, 2);
    for (int i = 0; i < 3; i++)
        settle(receiver, BUS_ACK);
    assert_true(broker_wait_depth(pub, queue, 5));
    assert_int_equal(receiver->total, 5);
    settle(receiver, BUS_ACK);
    assert_true(receiver_wait(receiver, &receiver->total, 6));
    assert_true(broker_wait_depth(pub, queue, 4));
    bus_consumer_set_channels(consumer, 0);
    settle(receiver, BUS_ACK);
    settle(receiver, BUS_ACK);
    bus_consumer_free(consumer);
    assert_true(broker_wait_depth(pub, queue, 4));
    assert_int_equal(receiver->total, 6);
    receiver_free(receiver);
    drop(queue);
}

static unsigned total_of(struct receiver *receiver)
{
    (void)pthread_mutex_lock(&receiver->lock);
    unsigned total = receiver->total;
    (void)pthread_mutex_unlock(&receiver->lock);
    return total;
}

static void two_consumers_share_a_queue(void **unused)
{
    (void)unused;
    enum { MESSAGES = 200 };
    char queue[BUS_NAME_SIZE];
    struct receiver *receivers[2];
    struct bus_consumer *consumers[2];
    broker_queue(queue);
    for (int i = 0; i < 2; i++) {
        receivers[i] = receiver_new();
        struct bus_consumer_setup setup = receiver_setup(receivers[i], queue);
        consumers[i] = open_consumer(&setup, 0);
        bus_consumer_set_channels(consumers[i], 1);
    }
    publish(queue, "x");
    publish(queue, "x"); /* each holds one: nobody is given two */
    assert_true(receiver_wait(receivers[0], &receivers[0]->held_count, 1));
    assert_true(receiver_wait(receivers[1], &receivers[1]->held_count, 1));
    for (int i = 0; i < 2; i++) {
        receivers[i]->settle_at_once = true;
        settle(receivers[i], BUS_ACK);
    }
    for (int i = 0; i < MESSAGES; i++)
        publish(queue, "x");
    int64_t deadline = soon(); /* what has left the queue may still be on its way */
    while (total_of(receivers[0]) + total_of(receivers[1]) < MESSAGES + 2 &&
           clock_mono_ms() < deadline)
        (void)usleep(1000);
    for (int i = 0; i < 2; i++)
        bus_consumer_free(consumers[i]);
    assert_int_equal(total_of(receivers[0]) + total_of(receivers[1]), MESSAGES + 2);
    for (int i = 0; i < 2; i++)
        receiver_free(receivers[i]);
    drop(queue);
}

struct acker {
    struct receiver *receiver;
    atomic_uint *acked;
    unsigned all;
};

static void *ack_all(void *arg)
{
    struct acker *acker = arg;
    while (atomic_load(acker->acked) < acker->all) {
        struct bus_delivery *delivery = NULL;
        (void)pthread_mutex_lock(&acker->receiver->lock);
        if (acker->receiver->held_count > 0)
            delivery = acker->receiver->held[--acker->receiver->held_count];
        (void)pthread_mutex_unlock(&acker->receiver->lock);
        if (delivery) {
            bus_settle(&delivery, BUS_ACK);
            atomic_fetch_add(acker->acked, 1);
        } else {
            (void)usleep(500);
        }
    }
    return NULL;
}

static void publish_one(const char *queue, struct ends *ends)
{
    struct err err = {0};
    const struct bus_message message = {
        .exchange = BUS_SUBMIT, .routing_key = queue, .body = SV("x"), .declare_queue = true};
    assert_ok(bus_publish(pub, &message, ends_note, ends, &err));
}

static void three_hundred_channels_are_settled_by_four_threads(void **unused)
{
    (void)unused;
    enum { MESSAGES = 3000, THREADS = 4 };
    char queue[BUS_NAME_SIZE];
    pthread_t threads[THREADS];
    atomic_uint acked = 0;
    struct receiver *receiver = receiver_new();
    struct acker acker = {receiver, &acked, MESSAGES};
    struct ends ends;
    struct bus_consumer_setup setup = receiver_setup(receiver, broker_queue(queue));
    struct bus_consumer *consumer = open_consumer(&setup, 0);
    bus_consumer_set_channels(consumer, 300);
    ends_init(&ends);
    for (unsigned i = 0; i < MESSAGES; i++)
        publish_one(queue, &ends);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ack_all, &acker), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_true(ends_wait(&ends, MESSAGES));
    bus_consumer_free(consumer);
    assert_true(broker_wait_depth(pub, queue, 0));
    assert_int_equal(receiver->total, MESSAGES);
    receiver_free(receiver);
    drop(queue);
}

static void a_lost_connection_takes_the_deliveries_and_comes_back(void **unused)
{
    (void)unused;
    char queue[BUS_NAME_SIZE], inbox[BUS_NAME_SIZE];
    struct tcp_proxy *proxy = tcp_proxy_open(broker_host(), broker_port());
    struct receiver *receiver = receiver_new();
    struct bus_consumer_setup setup = receiver_setup(receiver, broker_queue(queue));
    const char *keys[] = {broker_name("worker", inbox)};
    setup.inbox = (struct bus_inbox){BUS_COMMAND, inbox, keys, 1};
    struct bus_consumer *consumer = open_consumer(&setup, tcp_proxy_port(proxy));
    bus_consumer_set_channels(consumer, 2);
    publish(queue, "1");
    publish(queue, "2");
    assert_true(receiver_wait(receiver, &receiver->held_count, 2));
    assert_int_equal(receiver->generation, 1);
    struct bus_delivery *first = receiver_take(receiver);
    struct bus_delivery *second = receiver_take(receiver);
    tcp_proxy_cut(proxy);
    assert_true(receiver_wait(receiver, &receiver->lost, 2));
    assert_true(receiver_wait(receiver, &receiver->downs, 1));
    bus_settle(&first, BUS_ACK); /* means nothing any more */
    assert_true(receiver_wait(receiver, &receiver->ups, 2));
    assert_int_equal(bus_consumer_generation(consumer), 2);
    assert_true(receiver_wait(receiver, &receiver->held_count, 2));
    assert_true(receiver->held[0]->redelivered);
    bus_settle(&second, BUS_ACK);
    settle(receiver, BUS_ACK);
    settle(receiver, BUS_ACK);
    assert_int_equal(receiver->total, 4);
    bus_consumer_free(consumer);
    assert_true(broker_wait_depth(pub, queue, 0));
    receiver_free(receiver);
    tcp_proxy_free(proxy);
    drop(queue);
}

static void a_queue_that_is_deleted_is_declared_and_served_again(void **unused)
{
    (void)unused;
    char queue[BUS_NAME_SIZE];
    struct receiver *receiver = receiver_new();
    struct bus_consumer_setup setup = receiver_setup(receiver, broker_queue(queue));
    struct bus_consumer *consumer = open_consumer(&setup, 0);
    bus_consumer_set_channels(consumer, 3);
    publish(queue, "1");
    assert_true(receiver_wait(receiver, &receiver->held_count, 1));
    drop(queue);
    assert_true(receiver_wait(receiver, &receiver->lost, 1));
    settle(receiver, BUS_ACK);
    publish(queue, "2");
    assert_true(receiver_wait(receiver, &receiver->held_count, 1));
    assert_true(sv_is(receiver->held[0]->body, "2"));
    settle(receiver, BUS_ACK);
    bus_consumer_free(consumer);
    receiver_free(receiver);
    drop(queue);
}

static void a_deferred_message_comes_back_to_its_queue(void **unused)
{
    (void)unused;
    char queue[BUS_NAME_SIZE];
    struct err err = {0};
    struct receiver *receiver = receiver_new();
    struct bus_consumer_setup setup = receiver_setup(receiver, broker_queue(queue));
    assert_ok(bus_queue_declare(pub, queue, BUS_QUORUM, soon(), &err));
    struct bus_consumer *consumer = open_consumer(&setup, 0);
    bus_consumer_set_channels(consumer, 1);
    const struct bus_message message = {.exchange = BUS_DEFER,
                                        .routing_key = queue,
                                        .body = SV("later"),
                                        .message_id = "later",
                                        .defer_s = 1};
    int64_t start = clock_mono_ms();
    assert_ok(bus_publish_wait(pub, &message, soon(), &err));
    struct bus_delivery *delivery = receiver_take(receiver);
    assert_non_null(delivery);
    assert_true(clock_mono_ms() - start >= 900);
    assert_true(sv_is(delivery->body, "later"));
    assert_string_equal(delivery->routing_key, queue);
    assert_string_equal(delivery->message_id, "later");
    bus_settle(&delivery, BUS_ACK);
    bus_consumer_free(consumer);
    receiver_free(receiver);
    drop(queue);
}

static void a_delivery_may_outlive_its_consumer(void **unused)
{
    (void)unused;
    char queue[BUS_NAME_SIZE];
    struct receiver *receiver = receiver_new();
    struct bus_consumer_setup setup = receiver_setup(receiver, broker_queue(queue));
    struct bus_consumer *consumer = open_consumer(&setup, 0);
    bus_consumer_set_channels(consumer, 1);
    publish(queue, "x");
    assert_true(receiver_wait(receiver, &receiver->held_count, 1));
    bus_consumer_free(consumer);
    assert_int_equal(receiver->lost, 0);
    assert_true(broker_wait_depth(pub, queue, 1));
    receiver_free(receiver); /* settles it */
    drop(queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_delivery_tells_what_was_published),
        TEST(what_is_put_back_comes_again_counted_and_what_is_rejected_is_dead),
        TEST(as_many_deliveries_are_held_as_there_are_channels),
        TEST(two_consumers_share_a_queue),
        TEST(three_hundred_channels_are_settled_by_four_threads),
        TEST(a_lost_connection_takes_the_deliveries_and_comes_back),
        TEST(a_queue_that_is_deleted_is_declared_and_served_again),
        TEST(a_deferred_message_comes_back_to_its_queue),
        TEST(a_delivery_may_outlive_its_consumer),
    };
    return cmocka_run_group_tests(tests, open_publisher, close_publisher);
}
