/* SPDX-License-Identifier: MIT */
#include "tests/support/broker.h"

#include "common/base/clock.h"
#include "common/base/uuid.h"

#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *from_env(const char *name)
{
    const char *text = getenv(name); /* NOLINT(concurrency-mt-unsafe): nobody sets any here */
    if (text)
        return text;
    (void)fprintf(stderr, "%s is not set: run this through tests/support/with_servers\n", name);
    _exit(1);
}

int broker_port(void)
{
    return (int)strtol(from_env("SLUICE_TEST_AMQP_PORT"), NULL, 10);
}

const char *broker_host(void)
{
    return from_env("SLUICE_TEST_AMQP_HOST");
}

struct bus_config broker_config(int port)
{
    return (struct bus_config){.host = broker_host(),
                               .port = port ? port : broker_port(),
                               .user = from_env("SLUICE_TEST_AMQP_USER"),
                               .password = from_env("SLUICE_TEST_AMQP_PASSWORD"),
                               .vhost = from_env("SLUICE_TEST_AMQP_VHOST"),
                               .name = "test"};
}

int64_t soon(void)
{
    return clock_mono_ms() + WAIT_MS;
}

struct bus_publisher *broker_publisher(void)
{
    AUTO(bus_publisher_free) struct bus_publisher *pub = NULL;
    const struct bus_config cfg = broker_config(0);
    struct err err = {0};
    if (bus_publisher_open(&cfg, &pub, &err) || !bus_publisher_wait_up(pub, soon()))
        return NULL;
    return TAKE(pub);
}

const char *broker_name(const char *prefix, char *ret_name)
{
    char id[UUID_TEXT_SIZE];
    struct uuid random = uuid_v7();
    (void)snprintf(ret_name, BUS_NAME_SIZE, "%s-%s", prefix, uuid_text(&random, id));
    return ret_name;
}

const char *broker_queue(char *ret_name)
{
    char name[BUS_NAME_SIZE];
    return bus_submit_queue("test", broker_name("q", name), ret_name);
}

static void on_delivery(void *arg, struct bus_delivery **take_delivery)
{
    struct receiver *receiver = arg;
    (void)pthread_mutex_lock(&receiver->lock);
    receiver->total++;
    if (receiver->settle_at_once)
        bus_settle(take_delivery, receiver->how);
    else
        receiver->held[receiver->held_count++] = TAKE(*take_delivery);
    (void)pthread_cond_broadcast(&receiver->changed);
    (void)pthread_mutex_unlock(&receiver->lock);
}

static void on_lost(void *arg, struct bus_delivery *delivery)
{
    struct receiver *receiver = arg;
    (void)delivery;
    (void)pthread_mutex_lock(&receiver->lock);
    receiver->lost++;
    (void)pthread_cond_broadcast(&receiver->changed);
    (void)pthread_mutex_unlock(&receiver->lock);
}

static void on_message(void *arg, struct sv routing_key, struct sv body)
{
    struct receiver *receiver = arg;
    (void)body;
    (void)pthread_mutex_lock(&receiver->lock);
    receiver->messages++;
    (void)snprintf(receiver->last_key, BUS_NAME_SIZE, "%.*s", SV_ARG(routing_key));
    (void)pthread_cond_broadcast(&receiver->changed);
    (void)pthread_mutex_unlock(&receiver->lock);
}

static void on_state(void *arg, enum bus_state state, uint32_t generation)
{
    struct receiver *receiver = arg;
    (void)pthread_mutex_lock(&receiver->lock);
    receiver->ups += state == BUS_UP;
    receiver->downs += state == BUS_DOWN;
    receiver->generation = generation;
    (void)pthread_cond_broadcast(&receiver->changed);
    (void)pthread_mutex_unlock(&receiver->lock);
}

struct receiver *receiver_new(void)
{
    struct receiver *receiver = calloc(1, sizeof(*receiver));
    if (!receiver)
        _exit(1);
    (void)pthread_mutex_init(&receiver->lock, NULL);
    clock_cond_init(&receiver->changed);
    return receiver;
}

void receiver_free(struct receiver *receiver)
{
    for (unsigned i = 0; i < receiver->held_count; i++)
        bus_settle(&receiver->held[i], BUS_REQUEUE);
    free(receiver);
}

struct bus_consumer_setup receiver_setup(struct receiver *receiver, const char *queue)
{
    return (struct bus_consumer_setup){.queue = queue,
                                       .arg = receiver,
                                       .on_delivery = on_delivery,
                                       .on_lost = on_lost,
                                       .on_message = on_message,
                                       .on_state = on_state};
}

bool receiver_wait(struct receiver *receiver, const unsigned *counter, unsigned least)
{
    int64_t deadline = clock_mono_ms() + WAIT_MS;
    (void)pthread_mutex_lock(&receiver->lock);
    while (*counter < least && clock_cond_wait_until(&receiver->changed, &receiver->lock, deadline))
        ;
    bool reached = *counter >= least;
    (void)pthread_mutex_unlock(&receiver->lock);
    return reached;
}

struct bus_delivery *receiver_take(struct receiver *receiver)
{
    struct bus_delivery *delivery = NULL;
    if (!receiver_wait(receiver, &receiver->held_count, 1))
        return NULL;
    (void)pthread_mutex_lock(&receiver->lock);
    delivery = receiver->held[0];
    receiver->held_count--;
    for (unsigned i = 0; i < receiver->held_count; i++)
        receiver->held[i] = receiver->held[i + 1];
    (void)pthread_mutex_unlock(&receiver->lock);
    return delivery;
}

void ends_init(struct ends *ends)
{
    *ends = (struct ends){0};
    (void)pthread_mutex_init(&ends->lock, NULL);
    clock_cond_init(&ends->changed);
}

void ends_note(void *arg, enum err_code rc)
{
    struct ends *ends = arg;
    (void)pthread_mutex_lock(&ends->lock);
    ends->by_code[rc]++;
    ends->total++;
    (void)pthread_cond_broadcast(&ends->changed);
    (void)pthread_mutex_unlock(&ends->lock);
}

bool ends_wait(struct ends *ends, unsigned total)
{
    int64_t deadline = clock_mono_ms() + WAIT_MS;
    (void)pthread_mutex_lock(&ends->lock);
    while (ends->total < total && clock_cond_wait_until(&ends->changed, &ends->lock, deadline))
        ;
    bool reached = ends->total >= total;
    (void)pthread_mutex_unlock(&ends->lock);
    return reached;
}

static bool wait_depth(struct bus_publisher *pub, const char *queue, uint32_t least, uint32_t most)
{
    int64_t deadline = clock_mono_ms() + WAIT_MS;
    uint32_t depth = UINT32_MAX;
    while (clock_mono_ms() < deadline) {
        struct err err = {0};
        if (bus_queue_depth(pub, queue, deadline, &depth, NULL, &err) == ERR_OK && depth >= least &&
            depth <= most)
            return true;
        (void)usleep(20 * 1000); /* the broker tells nobody when a queue's length changes */
    }
    (void)fprintf(stderr, "queue %s holds %u messages, not %u\n", queue, depth, least);
    return false;
}

bool broker_wait_depth(struct bus_publisher *pub, const char *queue, uint32_t wanted)
{
    return wait_depth(pub, queue, wanted, wanted);
}

bool broker_wait_depth_least(struct bus_publisher *pub, const char *queue, uint32_t least)
{
    return wait_depth(pub, queue, least, UINT32_MAX);
}

extern char **environ;

bool broker_control(const char *arguments)
{
    char command[1024];
    char shell[] = "/bin/sh", flag[] = "-c";
    char *argv[] = {shell, flag, command, NULL};
    pid_t child = 0;
    int status = -1;
    (void)snprintf(command, sizeof(command), "%s %s >/dev/null",
                   from_env("SLUICE_TEST_RABBITMQCTL"), arguments);
    if (posix_spawn(&child, shell, NULL, NULL, argv, environ) != 0)
        return false;
    return waitpid(child, &status, 0) == child && status == 0;
}
