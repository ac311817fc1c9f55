/* SPDX-License-Identifier: MIT */
/* What the doctor asks of the database. */

#include "cli/admin_db.h"
#include "cli/doctor.h"

#include "common/base/clock.h"
#include "common/store/hook_send.h"
#include "common/store/job_store.h"
#include "common/store/migrate.h"
#include "common/store/process_store.h"
#include "common/store/retention_store.h"
#include "common/store/worker_store.h"

#include <inttypes.h>

#define OFFSET_WARN_MS 1000
#define OUTBOX_WARN_US INT64_C(30000000)
#define HOOK_WARN_US INT64_C(3600000000)
#define HOOK_FAILING_ATTEMPTS 3
#define HOOK_UNSEEN_WARN_US INT64_C(120000000)

/* What is most likely first; the numbers are the server's. */
static const char *cure_of(const struct err *away)
{
    if (strstr(away->text, "(1045)"))
        return "check db.user and db.password: the server runs, and does not let them in";
    if (strstr(away->text, "(1044)") || strstr(away->text, "(1049)"))
        return "check db.name, and the rights of db.user on it ('sluice grants'): the server runs";
    return "start the server; check db.host and db.port";
}

void doctor_database(struct doctor *doctor)
{
    const struct config *cfg = doctor->cfg;
    struct err err = {0};
    doctor->db = admin_db_config(cfg);
    if (site_store_look(&doctor->db, &doctor->site, &err))
        doctor_find(doctor, DOCTOR_FAULT, cure_of(&err), "%s", err.text);
    else if (doctor->site.read_only)
        doctor_find(
            doctor, DOCTOR_FAULT,
            "lead db.host to the primary; if this server is it: SET GLOBAL read_only = OFF",
            "the server at %s port %u is read-only: it counts as one that is away, and what "
            "needs it looks as if it did not run",
            cfg->db_host, cfg->db_port);
    else
        doctor_find(doctor, DOCTOR_OK, "", "%s answers at %s port %u", doctor->site.version,
                    cfg->db_host, cfg->db_port);
}

void doctor_schema(struct doctor *doctor)
{
    uint32_t known = migrate_newest();
    if (!doctor->site.has_schema || doctor->site.schema < known)
        doctor_find(doctor, DOCTOR_FAULT, "run 'sluice migrate'",
                    "the schema is at %03u, this version (%s) needs %03u", doctor->site.schema,
                    SLUICE_VERSION, known);
    else if (doctor->site.schema > known)
        doctor_find(doctor, DOCTOR_WARNING, "bring all programs to the newest version",
                    "the schema is at %03u, this version (%s) knows %03u", doctor->site.schema,
                    SLUICE_VERSION, known);
    else
        doctor_find(doctor, DOCTOR_OK, "", "at %03u, as version %s wants it", known,
                    SLUICE_VERSION);
}

void doctor_durability(struct doctor *doctor)
{
    if (doctor->site.flush == 1)
        doctor_find(doctor, DOCTOR_OK, "", "a commit is on the disk before it is answered");
    else
        doctor_find(doctor, DOCTOR_FAULT,
                    "set innodb_flush_log_at_trx_commit = 1 in the server's configuration",
                    "innodb_flush_log_at_trx_commit is %u: jobs that were accepted are lost when "
                    "the server's machine fails",
                    doctor->site.flush);
}

/* "90 s ahead of", "1500 ms behind" */
const char *doctor_offset(int64_t offset_ms, char *ret_text)
{
    int64_t size_ms = offset_ms < 0 ? -offset_ms : offset_ms;
    (void)snprintf(ret_text, DOCTOR_OFFSET_SIZE, "%" PRId64 " %s %s",
                   size_ms < 10000 ? size_ms : size_ms / 1000, size_ms < 10000 ? "ms" : "s",
                   offset_ms < 0 ? "behind" : "ahead of");
    return ret_text;
}

void doctor_clock(struct doctor *doctor)
{
    char off[DOCTOR_OFFSET_SIZE];
    int64_t offset_ms = (doctor->site.now_us - clock_wall_us()) / 1000;
    int64_t size_ms = offset_ms < 0 ? -offset_ms : offset_ms;
    (void)doctor_offset(offset_ms, off);
    if (size_ms > (int64_t)doctor->cfg->auth_leeway_s * 1000 && size_ms > OFFSET_WARN_MS)
        doctor_find(doctor, DOCTOR_FAULT, "set both clocks by NTP",
                    "the database's clock is %s this machine's, more than auth.leeway_s (%u s): "
                    "tokens are refused",
                    off, doctor->cfg->auth_leeway_s);
    else if (size_ms > OFFSET_WARN_MS)
        doctor_find(doctor, DOCTOR_WARNING, "set both clocks by NTP",
                    "the database's clock is %s this machine's", off);
    else
        doctor_find(doctor, DOCTOR_OK, "", "the database's clock and ours agree");
}

/* ---- the fleet ------------------------------------------------------------------------------ */

static bool is_stale(const struct doctor *doctor, const struct worker_row *row)
{
    uint32_t own_ms = doctor->cfg->fleet_lease_ms;
    uint32_t lease_ms = row->lease_ms > own_ms ? row->lease_ms : own_ms;
    return row->beat_age_us > (int64_t)lease_ms * 1000;
}

static bool same_worker(const struct worker_row *a, const struct worker_row *b)
{
    return strcmp(a->tenant, b->tenant) == 0 && strcmp(a->queue, b->queue) == 0 &&
           strcmp(a->name, b->name) == 0;
}

/* One finding for all incarnations of a worker: nothing if one of them lives. true: it does. */
static bool judge_dead(struct doctor *doctor, const struct worker_row *rows, size_t count,
                       size_t at)
{
    const struct worker_row *row = &rows[at];
    char times[32] = "";
    size_t deaths = 0;
    bool shown = false;
    for (size_t i = 0; i < count; i++) {
        if (!same_worker(row, &rows[i]))
            continue;
        if (rows[i].state == WORKER_LIVE && !is_stale(doctor, &rows[i]))
            return true;
        deaths += rows[i].state == WORKER_DEAD;
        shown = shown || (rows[i].state == WORKER_DEAD && i < at);
    }
    if (deaths > 1)
        (void)snprintf(times, sizeof(times), " %zu times", deaths);
    if (!shown)
        doctor_find(doctor, DOCTOR_WARNING, "look at its log and its host; start it again",
                    "worker '%s' of host %s (tenant %s, queue %s) was declared dead%s within the "
                    "last hour",
                    row->name, row->host, row->tenant, row->queue, times);
    return false;
}

static void judge_leases(struct doctor *doctor, const struct worker_row *rows, size_t count)
{
    const struct worker_row *other = NULL;
    size_t others = 0;
    for (size_t i = 0; i < count; i++) {
        if (rows[i].state != WORKER_LIVE || rows[i].lease_ms == doctor->cfg->fleet_lease_ms)
            continue;
        others++;
        if (!other || rows[i].lease_ms > other->lease_ms)
            other = &rows[i];
    }
    if (other)
        doctor_find(doctor, DOCTOR_WARNING,
                    "give all workers and sluice-recovery the same fleet.lease_ms; restart them "
                    "one after the other",
                    "fleet.lease_ms is %u here and another at %zu workers, most at '%s' of host "
                    "%s: %u; who dies is waited for by the larger",
                    doctor->cfg->fleet_lease_ms, others, other->name, other->host, other->lease_ms);
}

static size_t judge_workers(struct doctor *doctor, const struct worker_row *rows, size_t count)
{
    size_t live = 0, returned = 0;
    for (size_t i = 0; i < count; i++) {
        const struct worker_row *row = &rows[i];
        if (row->state == WORKER_LIVE && is_stale(doctor, row))
            doctor_find(
                doctor, DOCTOR_FAULT,
                "start a worker of the queue: it takes the jobs over; look at the host, its "
                "network, and whether the process is stopped",
                "worker '%s' of host %s (tenant %s, queue %s) has not been heard of for "
                "%" PRId64 " s",
                row->name, row->host, row->tenant, row->queue, row->beat_age_us / 1000000);
        else if (row->state == WORKER_DEAD)
            returned += judge_dead(doctor, rows, count, i);
        else
            live += row->state == WORKER_LIVE;
    }
    if (returned)
        doctor_find(doctor, DOCTOR_OK, "",
                    "%zu declared dead within the last hour, of workers that live again", returned);
    judge_leases(doctor, rows, count);
    return live;
}

/* Workers of the queue that live; taking: those of them that take jobs. */
static size_t count_servers(const struct doctor *doctor, const struct job_queue *queue,
                            const struct worker_row *rows, size_t count, size_t *ret_taking)
{
    size_t live = 0;
    *ret_taking = 0;
    for (size_t i = 0; i < count; i++) {
        if (rows[i].state != WORKER_LIVE || is_stale(doctor, &rows[i]) ||
            strcmp(rows[i].tenant, queue->tenant) != 0 || strcmp(rows[i].queue, queue->name) != 0)
            continue;
        live++;
        *ret_taking += !rows[i].draining;
    }
    return live;
}

static uint64_t waiting_on(const struct job_count *jobs, size_t count,
                           const struct job_queue *queue)
{
    for (size_t i = 0; i < count; i++) {
        if (jobs[i].status == JOB_PENDING && strcmp(jobs[i].tenant, queue->tenant) == 0 &&
            strcmp(jobs[i].queue, queue->name) == 0)
            return jobs[i].jobs;
    }
    return 0;
}

static void judge_queue(struct doctor *doctor, const struct job_queue *queue, size_t live,
                        uint64_t waiting)
{
    enum doctor_grade grade = waiting ? DOCTOR_FAULT : DOCTOR_WARNING;
    char cure[256];
    char wait[64] = "";
    if (waiting)
        (void)snprintf(wait, sizeof(wait), ": %" PRIu64 " jobs wait", waiting);
    (void)snprintf(cure, sizeof(cure), "%ssluice-worker --tenant %s --queue %s",
                   live ? "resume one with 'sluice undrain ID', or start " : "", queue->tenant,
                   queue->name);
    if (live)
        doctor_find(doctor, grade, cure,
                    "every live worker of queue '%s' of tenant %s is drained%s", queue->name,
                    queue->tenant, wait);
    else if (waiting || queue->enabled)
        doctor_find(doctor, grade, cure, "no live worker serves queue '%s' of tenant %s%s",
                    queue->name, queue->tenant, wait);
}

static void judge_queues(struct doctor *doctor, const struct worker_row *rows, size_t count)
{
    struct job_count *jobs = NULL;
    size_t job_count = 0;
    struct err err = {0};
    if (job_store_counts(doctor->store, &jobs, &job_count, &err))
        doctor_find(doctor, DOCTOR_FAULT, "", "the jobs cannot be counted: %s", err.text);
    for (size_t i = 0; i < doctor->queue_count; i++) {
        const struct job_queue *queue = &doctor->queues[i];
        size_t taking = 0;
        size_t live = count_servers(doctor, queue, rows, count, &taking);
        if (taking == 0)
            judge_queue(doctor, queue, live, waiting_on(jobs, job_count, queue));
    }
    free(jobs);
}

void doctor_workers(struct doctor *doctor)
{
    struct worker_row *rows = NULL;
    size_t count = 0;
    struct err err = {0};
    if (worker_store_list(doctor->store, NULL, &rows, &count, &err)) {
        doctor_find(doctor, DOCTOR_FAULT, "", "the workers cannot be read: %s", err.text);
        return;
    }
    size_t live = judge_workers(doctor, rows, count);
    judge_queues(doctor, rows, count);
    if (live > 0)
        doctor_find(doctor, DOCTOR_OK, "", "%zu live and heard of within a lease", live);
    free(rows);
}

void doctor_outbox(struct doctor *doctor)
{
    uint64_t rows = 0;
    int64_t age_us = 0;
    struct err err = {0};
    if (site_store_outbox(doctor->store, &rows, &age_us, &err))
        doctor_find(doctor, DOCTOR_FAULT, "", "the outbox cannot be read: %s", err.text);
    else if (age_us > OUTBOX_WARN_US)
        doctor_find(doctor, DOCTOR_FAULT,
                    "see that sluice-web or sluice-recovery runs and reaches the broker: they send "
                    "them",
                    "%" PRIu64 " messages are not sent, the oldest for %" PRId64 " s", rows,
                    age_us / 1000000);
    else
        doctor_find(doctor, DOCTOR_OK, "", "%" PRIu64 " messages are under way", rows);
}

/* ---- webhooks -------------------------------------------------------------------------------- */

struct hooks {
    bool wanted; /* somebody subscribes */
    bool runs;   /* a process was heard of */
    bool led;    /* one of them sends */
    uint64_t waiting;
    int64_t due_us;    /* so long the oldest delivery has been tried */
    int64_t unseen_us; /* so long ago was what nobody has looked at */
    struct hook_failing failing;
};

static enum err_code look_for_sender(struct doctor *doctor, struct hooks *hooks, struct err *err)
{
    struct process_row *rows = NULL;
    size_t count = 0;
    struct hook_sender sender = {0};
    enum err_code rc = process_store_list(doctor->store, PRESENT_MS, &rows, &count, err);
    for (size_t i = 0; rc == ERR_OK && i < count; i++)
        hooks->runs = hooks->runs || strcmp(rows[i].service, "sluice-webhook") == 0;
    free(rows);
    if (rc == ERR_OK)
        rc = hook_sender_look(doctor->store, &sender, err);
    hooks->led = sender.has_holder;
    return rc;
}

static enum err_code look_at_hooks(struct doctor *doctor, struct hooks *hooks, struct err *err)
{
    struct retention_row row = {0};
    enum err_code rc = hook_any(doctor->store, &hooks->wanted, err);
    if (rc == ERR_OK)
        rc = look_for_sender(doctor, hooks, err);
    if (rc == ERR_OK)
        rc = hook_waiting(doctor->store, &hooks->waiting, &hooks->due_us, err);
    if (rc == ERR_OK)
        rc = hook_failing(doctor->store, HOOK_FAILING_ATTEMPTS, &hooks->failing, err);
    if (rc == ERR_OK)
        rc = retention_store_get(doctor->store, &row, err);
    hooks->unseen_us = row.hook_us > 0 ? row.now_us - row.hook_us : 0;
    return rc;
}

/* Said at once: its receiver gets nothing until somebody looks. */
static void tell_failing(struct doctor *doctor, const struct hooks *hooks)
{
    const struct hook_failing *one = &hooks->failing;
    doctor_find(
        doctor, DOCTOR_WARNING,
        "look at 'sluice deliveries --state due', and at the receiver; webhook.give_up_s is "
        "how long each is tried",
        "a webhook%s%s of tenant %s fails: a delivery has failed %u times, the last "
        "time: %s; %" PRIu64 " deliveries wait, the oldest for %" PRId64
        " s, and each is given up after %u s",
        one->name[0] ? " named " : "", one->name, one->tenant, one->attempts,
        one->error[0] ? one->error : "no answer", hooks->waiting, hooks->due_us / 1000000,
        doctor->cfg->webhook_give_up_s);
}

void doctor_webhooks(struct doctor *doctor)
{
    struct hooks hooks = {0};
    struct err err = {0};
    enum err_code rc = look_at_hooks(doctor, &hooks, &err);
    int64_t longest_us = hooks.due_us > hooks.unseen_us ? hooks.due_us : hooks.unseen_us;
    if (rc)
        doctor_find(doctor, DOCTOR_FAULT, "", "the webhooks cannot be read: %s", err.text);
    else if ((hooks.wanted || hooks.waiting > 0) && !hooks.runs)
        doctor_find(doctor, DOCTOR_FAULT, "start sluice-webhook",
                    "sluice-webhook does not run: subscribers are told nothing; %" PRIu64
                    " deliveries wait, and the oldest event for %" PRId64 " s",
                    hooks.waiting, longest_us / 1000000);
    else if (hooks.wanted && !hooks.led)
        doctor_find(doctor, DOCTOR_FAULT, "look at the log of sluice-webhook",
                    "sluice-webhook runs, but none of its processes sends; the oldest event has "
                    "waited for %" PRId64 " s",
                    longest_us / 1000000);
    else if (hooks.unseen_us > HOOK_UNSEEN_WARN_US)
        doctor_find(doctor, DOCTOR_WARNING,
                    "look at the log of sluice-webhook, and at the load of the database",
                    "sluice-webhook is behind: it has not looked at what happened %" PRId64
                    " s ago",
                    hooks.unseen_us / 1000000);
    else if (hooks.failing.found)
        tell_failing(doctor, &hooks);
    else if (hooks.due_us > HOOK_WARN_US)
        doctor_find(doctor, DOCTOR_WARNING,
                    "look at 'sluice deliveries --state due': the error says what their receivers "
                    "answer",
                    "%" PRIu64 " deliveries wait, the oldest has been tried for %" PRId64 " s",
                    hooks.waiting, hooks.due_us / 1000000);
    else
        doctor_find(doctor, DOCTOR_OK, "", "%" PRIu64 " deliveries wait", hooks.waiting);
}
