/* SPDX-License-Identifier: MIT */
/* Messages that the doctor sends on the ways that jobs' messages take. Each carries the id of a
 * probe, which the readers write down as one, and its row is removed again. */

#include "cli/doctor.h"

#include "common/base/clock.h"
#include "common/base/uuid.h"
#include "common/store/dead_store.h"

#include <poll.h>

#define PATIENCE_MS 8000
#define PAUSE_MS 50

struct probe {
    struct uuid id;
    char message_id[sizeof(DEAD_PROBE_PREFIX) + UUID_TEXT_SIZE];
    char body[128];
};

static void make_probe(struct probe *ret_probe)
{
    char text[UUID_TEXT_SIZE];
    ret_probe->id = uuid_v7();
    (void)uuid_text(&ret_probe->id, text);
    (void)snprintf(ret_probe->message_id, sizeof(ret_probe->message_id), DEAD_PROBE_PREFIX "%s",
                   text);
    /* The worker that gets it finds no such job, and gives it up. */
    (void)snprintf(ret_probe->body, sizeof(ret_probe->body), "{\"v\":1,\"job\":\"%s\",\"epoch\":1}",
                   text);
}

/* true: said, for this check and those that follow. */
static bool is_blocked(struct doctor *doctor, enum err_code rc, const struct err *err)
{
    if (rc != ERR_BROKER_BLOCKED)
        return false;
    doctor->blocked = true;
    doctor_find(doctor, DOCTOR_FAULT,
                "make room on the broker's machine, or raise vm_memory_high_watermark or lower "
                "disk_free_limit: 'rabbitmq-diagnostics alarms' says which",
                "%s; submissions are refused", err->text);
    return true;
}

static enum err_code send_probe(struct doctor *doctor, const struct probe *probe,
                                enum bus_exchange exchange, const char *key, bool brief,
                                struct err *err)
{
    const struct bus_probe message = {.exchange = exchange,
                                      .routing_key = key,
                                      .message_id = probe->message_id,
                                      .body = sv_of(probe->body),
                                      .brief = brief};
    bool routed = false;
    enum err_code rc = bus_inspect_publish(doctor->bus, &message, &routed, err);
    if (rc == ERR_OK && !routed)
        rc = err_set(err, ERR_NOT_FOUND, "no queue is bound to %s", bus_exchange_name(exchange));
    return rc;
}

/* Waits for the row that a reader makes of it, and removes that. */
static bool comes_to_reader(struct doctor *doctor, const struct uuid *id)
{
    int64_t deadline_ms = clock_mono_ms() + PATIENCE_MS;
    bool found = false;
    struct err err = {0};
    while (!found && clock_mono_ms() < deadline_ms) {
        if (dead_store_take_probe(doctor->store, id, &found, &err))
            return false;
        if (!found)
            (void)poll(NULL, 0, PAUSE_MS);
    }
    return found;
}

static bool take_own(struct doctor *doctor, const char *queue)
{
    int64_t deadline_ms = clock_mono_ms() + PATIENCE_MS;
    bool found = false;
    struct err err = {0};
    while (!found && clock_mono_ms() < deadline_ms) {
        if (bus_inspect_take(doctor->bus, queue, &found, &err))
            return false;
        if (!found)
            (void)poll(NULL, 0, PAUSE_MS);
    }
    return found;
}

/* And may write down what comes to them. */
static bool readers_there(struct doctor *doctor)
{
    if (doctor->site.read_only) {
        doctor_find(doctor, DOCTOR_CANNOT_TELL, "put the faults above right first",
                    "the database is read-only: no reader could write a probe down");
        return false;
    }
    if (doctor->blocked) {
        doctor_find(doctor, DOCTOR_CANNOT_TELL, "put the faults above right first",
                    "the broker takes no messages");
        return false;
    }
    if (doctor->dead_reader && doctor->alternate_reader)
        return true;
    doctor_find(doctor, DOCTOR_CANNOT_TELL, "start the readers first",
                "a probe is sent only while both sluice-deadletter and sluice-alternate run");
    return false;
}

/* ---- bindings of the queues of jobs --------------------------------------------------------- */

/* A message without a queue comes to sluice.alternate, and so to our own queue there. */
static bool check_binding(struct doctor *doctor, const char *own, const char *queue)
{
    struct probe probe;
    struct err err = {0};
    bool lost = false;
    make_probe(&probe);
    enum err_code rc = send_probe(doctor, &probe, BUS_SUBMIT, queue, true, &err);
    if (rc == ERR_OK)
        rc = bus_inspect_take(doctor->bus, own, &lost, &err);
    if (is_blocked(doctor, rc, &err))
        return false;
    if (rc)
        doctor_find(doctor, DOCTOR_CANNOT_TELL, "run it again", "queue %s: %s", queue, err.text);
    else if (lost)
        doctor_find(doctor, DOCTOR_FAULT,
                    "start a worker of this queue, or sluice-recovery: they bind it again",
                    "queue %s is not bound to sluice.submit: its jobs are blocked", queue);
    (void)(rc == ERR_OK && comes_to_reader(doctor, &probe.id));
    return rc == ERR_OK && !lost;
}

static bool is_idle(struct doctor *doctor, const struct job_queue *queue, const char *name,
                    bool *ret_there)
{
    struct bus_looked looked = {0};
    struct err err = {0};
    enum bus_queue_type type = BUS_QUORUM;
    if (!bus_queue_type_parse(sv_of(queue->queue_type), &type))
        type = BUS_QUORUM;
    enum err_code rc = bus_inspect_queue(doctor->bus, BUS_QUEUE_SUBMIT, name, type, &looked, &err);
    *ret_there = rc == ERR_OK && looked.look != BUS_LOOK_MISSING;
    return *ret_there && looked.messages == 0;
}

void doctor_bindings(struct doctor *doctor)
{
    char own[BUS_NAME_SIZE];
    char id[UUID_TEXT_SIZE];
    struct uuid fresh = uuid_v7();
    struct err err = {0};
    size_t checked = 0;
    bool good = true;
    if (!readers_there(doctor))
        return;
    (void)snprintf(own, sizeof(own), "sluice.doctor.%s", uuid_text(&fresh, id));
    if (bus_inspect_own_queue(doctor->bus, own, BUS_ALTERNATE, false, &err)) {
        doctor_find(doctor, DOCTOR_CANNOT_TELL, "", "%s", err.text);
        return;
    }
    for (size_t i = 0; i < doctor->queue_count && !doctor->blocked; i++) {
        const struct job_queue *queue = &doctor->queues[i];
        char name[BUS_NAME_SIZE];
        bool there = false;
        (void)bus_submit_queue(queue->tenant, queue->name, name);
        if (is_idle(doctor, queue, name, &there)) {
            checked++;
            good = check_binding(doctor, own, name) && good;
        } else if (there) {
            doctor_find(doctor, DOCTOR_CANNOT_TELL, "run it again when fewer jobs wait",
                        "queue %s: messages wait in it, and a probe would wait behind them", name);
        }
    }
    if (good)
        doctor_find(doctor, DOCTOR_OK, "", "%zu queues of jobs get what is sent to them", checked);
}

/* ---- the three ways ------------------------------------------------------------------------- */

void doctor_submit_path(struct doctor *doctor)
{
    char own[BUS_NAME_SIZE];
    char id[UUID_TEXT_SIZE];
    struct probe probe;
    struct err err = {0};
    if (!readers_there(doctor))
        return;
    make_probe(&probe);
    (void)snprintf(own, sizeof(own), "sluice.doctor.%s", uuid_text(&probe.id, id));
    const struct bus_probe message = {.exchange = BUS_SUBMIT,
                                      .routing_key = own,
                                      .message_id = probe.message_id,
                                      .body = sv_of(probe.body)};
    bool routed = false;
    enum err_code rc = bus_inspect_own_queue(doctor->bus, own, BUS_SUBMIT, true, &err);
    if (rc == ERR_OK)
        rc = bus_inspect_publish(doctor->bus, &message, &routed, &err);
    if (is_blocked(doctor, rc, &err))
        return;
    bool came = rc == ERR_OK && take_own(doctor, own);
    if (came && comes_to_reader(doctor, &probe.id)) /* it was rejected, and died */
        doctor_find(doctor, DOCTOR_OK, "", "a probe came through sluice.submit");
    else if (came)
        doctor_find(doctor, DOCTOR_FAULT, "look at the log of sluice-deadletter",
                    "a probe came through sluice.submit, and was not seen again when it was "
                    "rejected");
    else
        doctor_find(doctor, DOCTOR_FAULT, "look at the broker's log",
                    "a probe was not delivered by sluice.submit%s%s", rc ? ": " : "",
                    rc ? err.text : "");
}

static void check_way(struct doctor *doctor, enum bus_exchange exchange, const char *key,
                      const char *reader)
{
    struct probe probe;
    struct err err = {0};
    char cure[160];
    if (!readers_there(doctor))
        return;
    make_probe(&probe);
    enum err_code rc = send_probe(doctor, &probe, exchange, key, false, &err);
    if (rc == ERR_OK && comes_to_reader(doctor, &probe.id)) {
        doctor_find(doctor, DOCTOR_OK, "", "a probe came to %s, and into the database", reader);
        return;
    }
    if (is_blocked(doctor, rc, &err))
        return;
    (void)snprintf(cure, sizeof(cure),
                   "start %s again: it declares its queue and binding; then look at its log",
                   reader);
    doctor_find(doctor, DOCTOR_FAULT, cure, "a probe did not come to %s%s%s", reader,
                rc ? ": " : "", rc ? err.text : "");
}

void doctor_dead_path(struct doctor *doctor)
{
    check_way(doctor, BUS_DEAD, "sluice.doctor", "sluice-deadletter");
}

/* No queue is bound with this key. */
void doctor_alternate_path(struct doctor *doctor)
{
    check_way(doctor, BUS_SUBMIT, "sluice.doctor.nowhere", "sluice-alternate");
}
