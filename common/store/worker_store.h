/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_WORKER_STORE_H
#define COMMON_STORE_WORKER_STORE_H

/* worker_store: the fleet. Alive or dead is written here and nowhere else: workers.state. Only the
 * CHANGING of a beat matters; no clock of one machine is compared with that of another. */

#include "common/model/job.h"
#include "common/store/store.h"

#define WORKER_LEASE_UNKNOWN_MS                                                                    \
    600000 /* of a version that wrote none: the setting's upper bound                              \
            */
#define WORKER_RUNNER_SIZE 96

enum worker_state { WORKER_LIVE, WORKER_STOPPED, WORKER_REPLACED, WORKER_DEAD };

struct worker_row {
    struct uuid id;
    char tenant[TENANT_SIZE];
    char queue[QUEUE_NAME_SIZE];
    char name[64];
    char host[256];
    struct uuid home; /* of its work folder; not read */
    char boot_id[37];
    uint32_t pid;
    char version[33];
    uint32_t slots;
    uint32_t busy;
    uint32_t lease_ms;               /* its own setting, which grants its runs their time */
    char runner[WORKER_RUNNER_SIZE]; /* which process holds its runs; "": not known; not read */
    uint64_t beat;
    enum worker_state state;
    bool draining;
    int64_t started_us;
    int64_t beat_age_us; /* by the database's clock, for people only */
    int64_t clock_ms;    /* its clock was so far ahead of the database's at its last beat */
};

const char *worker_state_text(enum worker_state state);
/* A new row with state live; the same id again is the same row: an earlier call had no answer. */
MUST_USE enum err_code worker_store_register(struct store *store, const struct worker_row *row,
                                             struct err *err);
/* Beats and what comes back with one: on a connection of its own, opened by beat_open. */
struct beat;
MUST_USE enum err_code beat_open(const struct store_config *cfg, const struct uuid *worker,
                                 struct beat **ret_beat, struct err *err);
/* beat + 1 and busy; connects if need be, waits 5 s at most for each answer. ERR_FENCED: the row is
 * no longer live (declared dead or replaced): final. ERR_DB_AWAY: not written, or not known to be.
 */
MUST_USE enum err_code beat_write(struct beat *beat, uint32_t busy, struct err *err);
/* A beat for another row, of a former incarnation whose runs we keep: its lease is not less than
 * lease_ms from then on. ERR_FENCED: that row is not live any more. */
MUST_USE enum err_code beat_write_former(struct beat *beat, const struct uuid *former,
                                         uint32_t lease_ms, struct err *err);
void beat_free(struct beat *beat);

/* From live only: stopped (said so itself) and replaced (by a newer incarnation). */
MUST_USE enum err_code worker_store_end(struct store *store, const struct uuid *worker,
                                        enum worker_state state, struct err *err);
/* draining: it takes no further jobs; it reads that with its beat. ERR_NOT_FOUND; ERR_STATE: it is
 * not live. */
MUST_USE enum err_code worker_store_set_draining(struct store *store, const char *tenant,
                                                 const struct uuid *worker, bool draining,
                                                 struct err *err);
/* dead, if it is live and its beat is still the one that was seen; ERR_CONFLICT otherwise. */
MUST_USE enum err_code worker_store_declare_dead(struct store *store, const struct uuid *worker,
                                                 uint64_t beat_seen, struct err *err);
MUST_USE enum err_code worker_store_state(struct store *store, const struct uuid *worker,
                                          enum worker_state *ret_state, struct err *err);
MUST_USE enum err_code worker_store_is_draining(struct store *store, const struct uuid *worker,
                                                bool *ret_draining, struct err *err);
/* The live rows of this work folder (former incarnations of one worker); free() them. */
MUST_USE enum err_code worker_store_former(struct store *store, const struct uuid *home,
                                           struct worker_row **ret_rows, size_t *ret_count,
                                           struct err *err);

/* Whether that worker, of any state, had this work folder and this very runner. */
MUST_USE enum err_code worker_store_shares_runner(struct store *store, const struct uuid *worker,
                                                  const struct uuid *home, const char *runner,
                                                  bool *ret_shares, struct err *err);

struct worker_beat {
    struct uuid id;
    uint64_t beat;
    uint32_t lease_ms;
};
/* Beats of all live workers, for the watch; free() them. */
MUST_USE enum err_code worker_store_beats(struct store *store, struct worker_beat **ret_beats,
                                          size_t *ret_count, struct err *err);
/* Workers of a tenant (all if NULL): live ones, and others that ended within the last hour. */
MUST_USE enum err_code worker_store_list(struct store *store, const char *tenant,
                                         struct worker_row **ret_rows, size_t *ret_count,
                                         struct err *err);
MUST_USE enum err_code worker_store_get(struct store *store, const char *tenant,
                                        const struct uuid *worker, struct worker_row *ret_row,
                                        struct err *err);
/* Of those that serve a queue: the live one that was heard of last, or the one that was there last
 * of those that are not live any more. ERR_NOT_FOUND. */
MUST_USE enum err_code worker_store_of_queue(struct store *store, const char *tenant,
                                             const char *queue, bool live,
                                             struct worker_row *ret_row, struct err *err);

#endif
