/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_BROKER_H
#define TESTS_SUPPORT_BROKER_H

/* broker: what the integration tests of the bus share: the broker's address, a receiver that
 * collects what a consumer gives it, waiting for an event. */

#include "common/bus/consumer.h"
#include "common/bus/publisher.h"

#include <pthread.h>

#define RECEIVER_MAX 20000
#define WAIT_MS 60000

int64_t soon(void); /* WAIT_MS from now */
/* From SLUICE_TEST_AMQP_*; a port of 0 is the broker's own. */
struct bus_config broker_config(int port);
int broker_port(void);
const char *broker_host(void);
/* "PREFIX-<random>", another one at each call, into BUS_NAME_SIZE bytes. */
const char *broker_name(const char *prefix, char *ret_name);
/* A submission queue's name with a random part. */
const char *broker_queue(char *ret_name);

/* Straight to the broker, and up; NULL if it does not come up. */
struct bus_publisher *broker_publisher(void);

/* Collects deliveries and events; settle_at_once settles as it comes, else they are held. */
struct receiver {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool settle_at_once;
    enum bus_settle how;
    struct bus_delivery *held[RECEIVER_MAX];
    unsigned held_count, total, lost, ups, downs, messages;
    uint32_t generation;
    char last_key[BUS_NAME_SIZE];
};

struct receiver *receiver_new(void);
void receiver_free(struct receiver *receiver); /* requeues what it holds */
struct bus_consumer_setup receiver_setup(struct receiver *receiver, const char *queue);
/* Waits until *counter is at least `least`; false after WAIT_MS. */
bool receiver_wait(struct receiver *receiver, const unsigned *counter, unsigned least);
/* The oldest delivery that it holds; NULL if none comes. */
struct bus_delivery *receiver_take(struct receiver *receiver);

/* Counts how messages ended. */
struct ends {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned by_code[ERR_CODE_COUNT], total;
};

void ends_init(struct ends *ends);
void ends_note(void *ends, enum err_code rc); /* a bus_confirm_fn */
bool ends_wait(struct ends *ends, unsigned total);

/* Waits until the queue's depth is as wanted; or at least that, for queues that tests share. */
bool broker_wait_depth(struct bus_publisher *pub, const char *queue, uint32_t wanted);
bool broker_wait_depth_least(struct bus_publisher *pub, const char *queue, uint32_t least);
/* Runs rabbitmqctl of the test's broker; false if it failed. */
bool broker_control(const char *arguments);

#endif
