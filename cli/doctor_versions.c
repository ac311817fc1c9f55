/* SPDX-License-Identifier: MIT */
/* Which versions run beside each other, and whether what is old is removed in time. */

#include "cli/doctor.h"

#include "common/store/migrate.h"
#include "common/store/process_store.h"
#include "common/store/retention.h"
#include "common/store/worker_store.h"

#include <inttypes.h>

#define HOUR_US INT64_C(3600000000)
#define MIB ((uint64_t)1024 * 1024)

/* ---- versions -------------------------------------------------------------------------------- */

static const char restart_cure[] =
    "restart it with the version that is installed (docs/operations.md, upgrade)";

/* true: it is of our version. */
static bool judge_process(struct doctor *doctor, const struct process_row *row)
{
    if (strcmp(row->version, SLUICE_VERSION) == 0 && row->schema == migrate_newest())
        return true;
    doctor_find(doctor, DOCTOR_WARNING, restart_cure,
                "%s of host %s (pid %u) is version %s and knows schema %03u; this program is %s "
                "and knows %03u",
                row->service, row->host, row->pid, row->version, row->schema, SLUICE_VERSION,
                migrate_newest());
    return false;
}

static bool judge_worker(struct doctor *doctor, const struct worker_row *row)
{
    if (row->state != WORKER_LIVE || strcmp(row->version, SLUICE_VERSION) == 0)
        return true;
    doctor_find(doctor, DOCTOR_WARNING, restart_cure,
                "worker '%s' of host %s (tenant %s, queue %s) is version %s; this program is %s",
                row->name, row->host, row->tenant, row->queue, row->version, SLUICE_VERSION);
    return false;
}

void doctor_versions(struct doctor *doctor)
{
    struct process_row *processes = NULL;
    struct worker_row *workers = NULL;
    size_t process_count = 0;
    size_t worker_count = 0;
    struct err err = {0};
    bool alike = true;
    enum err_code rc =
        process_store_list(doctor->store, PRESENT_MS, &processes, &process_count, &err);
    if (rc == ERR_OK)
        rc = worker_store_list(doctor->store, NULL, &workers, &worker_count, &err);
    for (size_t i = 0; rc == ERR_OK && i < process_count; i++)
        alike = judge_process(doctor, &processes[i]) && alike;
    for (size_t i = 0; rc == ERR_OK && i < worker_count; i++)
        alike = judge_worker(doctor, &workers[i]) && alike;
    if (rc)
        doctor_find(doctor, DOCTOR_FAULT, "", "the processes cannot be read: %s", err.text);
    else if (alike)
        doctor_find(doctor, DOCTOR_OK, "", "every process that runs is version %s", SLUICE_VERSION);
    free(processes);
    free(workers);
}

/* ---- clocks ---------------------------------------------------------------------------------- */

#define CLOCK_WARN_MS 5000 /* a statement that waited looks like a clock that is behind */

static bool is_off(int64_t offset_ms, int64_t most_ms)
{
    return offset_ms > most_ms || offset_ms < -most_ms;
}

static bool judge_process_clock(struct doctor *doctor, const struct process_row *row)
{
    char off[DOCTOR_OFFSET_SIZE];
    int64_t leeway_ms = (int64_t)doctor->cfg->auth_leeway_s * 1000;
    if (!is_off(row->clock_ms, CLOCK_WARN_MS))
        return true;
    (void)doctor_offset(row->clock_ms, off);
    if (strcmp(row->service, "sluice-web") == 0 && is_off(row->clock_ms, leeway_ms))
        doctor_find(doctor, DOCTOR_FAULT, "set the clock of this host by NTP",
                    "%s of host %s (pid %u): its clock is %s the database's, more than "
                    "auth.leeway_s (%u s): it refuses good tokens, or takes those that expired",
                    row->service, row->host, row->pid, off, doctor->cfg->auth_leeway_s);
    else
        doctor_find(doctor, DOCTOR_WARNING, "set the clock of this host by NTP",
                    "%s of host %s (pid %u): its clock is %s the database's", row->service,
                    row->host, row->pid, off);
    return false;
}

static bool judge_worker_clock(struct doctor *doctor, const struct worker_row *row)
{
    char off[DOCTOR_OFFSET_SIZE];
    if (row->state != WORKER_LIVE || !is_off(row->clock_ms, CLOCK_WARN_MS))
        return true;
    doctor_find(doctor, DOCTOR_WARNING, "set the clock of this host by NTP",
                "worker '%s' of host %s (tenant %s, queue %s): its clock is %s the database's",
                row->name, row->host, row->tenant, row->queue, doctor_offset(row->clock_ms, off));
    return false;
}

void doctor_clocks(struct doctor *doctor)
{
    struct process_row *processes = NULL;
    struct worker_row *workers = NULL;
    size_t process_count = 0;
    size_t worker_count = 0;
    struct err err = {0};
    bool good = true;
    enum err_code rc =
        process_store_list(doctor->store, PRESENT_MS, &processes, &process_count, &err);
    if (rc == ERR_OK)
        rc = worker_store_list(doctor->store, NULL, &workers, &worker_count, &err);
    for (size_t i = 0; rc == ERR_OK && i < process_count; i++)
        good = judge_process_clock(doctor, &processes[i]) && good;
    for (size_t i = 0; rc == ERR_OK && i < worker_count; i++)
        good = judge_worker_clock(doctor, &workers[i]) && good;
    if (rc)
        doctor_find(doctor, DOCTOR_FAULT, "", "the processes cannot be read: %s", err.text);
    else if (good)
        doctor_find(doctor, DOCTOR_OK, "",
                    "no running process has a clock that is %d s off the database's",
                    CLOCK_WARN_MS / 1000);
    free(processes);
    free(workers);
}

/* ---- retention ------------------------------------------------------------------------------- */

static void tell_sizes(struct doctor *doctor, const struct retention_row *row)
{
    struct table_size sizes[TABLE_SIZES_MAX];
    size_t count = 0;
    uint64_t bytes = 0;
    uint64_t jobs = 0;
    struct err err = {0};
    if (retention_store_sizes(doctor->store, sizes, &count, &err))
        return;
    for (size_t i = 0; i < count; i++) {
        bytes += sizes[i].bytes;
        jobs += strcmp(sizes[i].table, "jobs") == 0 ? sizes[i].rows : 0;
    }
    doctor_find(doctor, DOCTOR_OK, "",
                "some %" PRIu64 " jobs; %" PRIu64 " MiB in tables, %" PRIu64
                " MiB in the archive at its last walk",
                jobs, bytes / MIB, row->archive_bytes / MIB);
}

/* Jobs that would be gone, but that sluice-webhook has not looked at. */
static void judge_untold(struct doctor *doctor, const struct retention_row *row)
{
    const struct retention_policy policy = retention_policy_of(doctor->cfg);
    struct retention_row told = *row;
    bool stays = false;
    told.hook_us = 0;
    for (int kind = 0; kind < RETENTION_KIND_COUNT; kind++)
        stays = stays || retention_limit(&policy, (enum retention_kind)kind, row, 0) <
                             retention_limit(&policy, (enum retention_kind)kind, &told, 0);
    if (stays)
        doctor_find(doctor, DOCTOR_WARNING, "start sluice-webhook, and look at its log",
                    "old jobs stay for sluice-webhook, which has not looked at what happened "
                    "%" PRId64 " h ago; webhook.give_up_s (%u s) after their time they go untold",
                    (row->now_us - row->hook_us) / HOUR_US, policy.untold_s);
}

void doctor_retention(struct doctor *doctor)
{
    struct retention_row row = {0};
    struct err err = {0};
    int64_t most_us = 24 * HOUR_US + (int64_t)doctor->cfg->retention_interval_s * 2000000;
    if (retention_store_get(doctor->store, &row, &err)) {
        doctor_find(doctor, DOCTOR_FAULT, "", "%s", err.text);
        return;
    }
    int64_t since_us = row.now_us - (row.ended_us > 0 ? row.ended_us : row.created_us);
    if (since_us > most_us)
        doctor_find(doctor, DOCTOR_WARNING,
                    "see that sluice-recovery runs and can write to archive.root; its log has "
                    "retention.*; 'sluice purge --dry-run' tells what waits",
                    "what is old was not removed to the end for %" PRId64 " h", since_us / HOUR_US);
    judge_untold(doctor, &row);
    tell_sizes(doctor, &row);
}
