/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_RETENTION_H
#define COMMON_STORE_RETENTION_H

/* retention: what is older than its policy is removed, a little at a time. Of a job first the
 * output goes, then (in one transaction) its row and its history: whoever dies in between leaves a
 * job without output, which the next pass finds again. What has no row at all (a database that was
 * restored from before) is found by a walk through the archive.
 *
 * What is never removed: a job that has not ended; one whose Idempotency-Key may still be used; one
 * that may have a message which is not sent yet; for a while, one that somebody who subscribed is
 * still to be told of; output without a job in an archive that more than
 * one site (more than one database) has written to.
 * Threads: owner. Memory: all is borrowed. */

#include "common/config/config.h"
#include "common/store/retention_store.h"

struct retention_policy {
    uint32_t days[RETENTION_KIND_COUNT]; /* 0: for ever */
    uint32_t key_hours;                  /* how long an Idempotency-Key is remembered */
    uint32_t untold_s; /* so much longer for a job that somebody is still to be told of */
    uint32_t load_percent;
};
struct retention_policy retention_policy_of(const struct config *cfg);

/* What of this kind is older than the answer goes; 0: nothing. before_us: instead of the policy's
 * days, 0 for these. */
int64_t retention_limit(const struct retention_policy *policy, enum retention_kind kind,
                        const struct retention_row *row, int64_t before_us);
/* The same for a job that somebody is still to be told of. */
int64_t retention_untold_limit(const struct retention_policy *policy, enum retention_kind kind,
                               const struct retention_row *row, int64_t before_us);
/* What is in the archive without a job goes if the job would be older than the answer: no job is
 * kept for so long. 0: nothing (jobs of some kind are kept for ever). */
int64_t retention_orphan_limit(const struct retention_policy *policy,
                               const struct retention_row *row);

struct retention_report {
    uint64_t rows[RETENTION_KIND_COUNT];
    uint64_t events;
    uint64_t bytes;   /* of output that went */
    uint64_t orphans; /* folders without a job that went */
    uint64_t failed;  /* folders that could not be removed; their jobs stay */
    uint64_t untold;  /* jobs that nobody was told of, though somebody may have asked to be */
    bool swept;
    uint64_t archive_jobs; /* if swept: what is there now */
    uint64_t archive_bytes;
};

#define RETENTION_LEASE_MS 60000

struct retention_pass {
    struct store *store;
    int archive_fd;
    const struct retention_policy *policy;
    struct uuid holder; /* who removes; must have the lead (retention_store_lead) */
    int64_t lease_ms;
    const char *tenant; /* only jobs of this one; NULL: all, and what is no job as well */
    int64_t before_us;  /* only jobs, that ended before; 0: as the policy says */
    bool is_dry;        /* nothing is changed: what would go is counted */
    bool sweeps;        /* walks through the whole archive as well */
    /* Sleeps; true: stop. Called after each batch; NULL: neither pauses nor stops. */
    bool (*rest)(void *arg, int64_t ms);
    void *arg;
    /* So many jobs of a tenant went; NULL: nobody asks. An error ends the pass. */
    enum err_code (*went)(const struct retention_pass *pass, const char *tenant, uint64_t jobs,
                          struct err *err);
    struct retention_report report;
};
/* ERR_STOPPING: rest asked for it; ERR_IN_USE: another has taken the lead. What was done until then
 * is in the report. */
MUST_USE enum err_code retention_run(struct retention_pass *pass, struct err *err);

#endif
