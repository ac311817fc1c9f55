/* SPDX-License-Identifier: MIT */
#include "readers/recovery/keeper.h"

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/log.h"
#include "common/service/metrics.h"
#include "common/store/retention.h"

#include <pthread.h>

#define LOOK_MS 30000 /* how often it is seen whether a pass is due */
#define LEASES 3      /* without a sign before another goes on */
#define HOUR_US INT64_C(3600000000)

struct keeper {
    struct store *store;
    const struct config *cfg;
    struct retention_policy policy;
    struct uuid me;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stopping; /* lock */
    pthread_t thread;
};

/* ---- metrics --------------------------------------------------------------------------------- */

static struct metric removed = {.name = "sluice_retention_removed_total",
                                .help = "Rows removed because they were old.",
                                .type = METRIC_IS_COUNTER,
                                .label = "kind",
                                .values = {
#define RETENTION(id, name, state, what) #name,
#include "common/store/retention.def"
#undef RETENTION
                                    "event", "orphan"}};
enum { REMOVED_EVENTS = RETENTION_KIND_COUNT, REMOVED_ORPHANS };
static struct metric bytes = METRIC_COUNTER("sluice_retention_removed_bytes_total",
                                            "Bytes of output removed because they were old");
static struct metric failed =
    METRIC_COUNTER("sluice_retention_failed_total", "Folders of output that could not be removed");
static struct metric untold = METRIC_COUNTER("sluice_retention_untold_total",
                                             "Jobs removed before sluice-webhook had looked "
                                             "through their history, while somebody subscribed");
static struct metric archive_jobs =
    METRIC_GAUGE("sluice_archive_jobs", "Jobs with output at the last walk through the archive");
static struct metric archive_bytes =
    METRIC_GAUGE("sluice_archive_bytes", "Bytes of output at the last walk through the archive");

static const char *const tables[] = {"audit_log",   "dead_messages", "idempotency_keys",
                                     "job_blocked", "job_events",    "job_rates",
                                     "jobs",        "outbox",        "workers"};
#define TABLE_LABELS                                                                               \
    "audit_log", "dead_messages", "idempotency_keys", "job_blocked", "job_events", "job_rates",    \
        "jobs", "outbox", "workers"
static struct metric table_rows = {.name = "sluice_table_rows",
                                   .help = "Rows, as the database estimates them",
                                   .type = METRIC_IS_GAUGE,
                                   .label = "table",
                                   .values = {TABLE_LABELS}};
static struct metric table_bytes = {.name = "sluice_table_bytes",
                                    .help = "Bytes with indexes, as the database estimates them",
                                    .type = METRIC_IS_GAUGE,
                                    .label = "table",
                                    .values = {TABLE_LABELS}};

void keeper_metrics_add(void)
{
    struct metric *const all[] = {&removed,      &bytes,         &failed,     &untold,
                                  &archive_jobs, &archive_bytes, &table_rows, &table_bytes};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        metrics_add(all[i]);
}

static void set_value(struct metric *metric, size_t value, uint64_t now)
{
    metric_count(metric, value, (int64_t)now - metric_value(metric, value));
}

static void show_size(const struct table_size *size)
{
    for (size_t t = 0; t < ARRAY_LEN(tables); t++) {
        if (strcmp(size->table, tables[t]) != 0)
            continue;
        set_value(&table_rows, t, size->rows);
        set_value(&table_bytes, t, size->bytes);
    }
}

static void show_sizes(struct keeper *keeper)
{
    struct table_size sizes[TABLE_SIZES_MAX];
    struct retention_row row;
    size_t count = 0;
    struct err err = {0};
    if (retention_store_sizes(keeper->store, sizes, &count, &err) != ERR_OK)
        count = 0;
    for (size_t i = 0; i < count; i++)
        show_size(&sizes[i]);
    if (retention_store_get(keeper->store, &row, &err) == ERR_OK) {
        metric_set(&archive_jobs, (int64_t)row.archive_jobs);
        metric_set(&archive_bytes, (int64_t)row.archive_bytes);
    }
}

static void count_report(const struct retention_report *report)
{
    for (size_t i = 0; i < RETENTION_KIND_COUNT; i++)
        metric_count(&removed, i, (int64_t)report->rows[i]);
    metric_count(&removed, REMOVED_EVENTS, (int64_t)report->events);
    metric_count(&removed, REMOVED_ORPHANS, (int64_t)report->orphans);
    metric_count(&bytes, 0, (int64_t)report->bytes);
    metric_count(&failed, 0, (int64_t)report->failed);
    metric_count(&untold, 0, (int64_t)report->untold);
}

static void log_report(const struct retention_report *report)
{
    log_event(LOG_INFO, "retention.passed", LOG_U("finished", report->rows[RETENTION_OF_FINISHED]),
              LOG_U("failed", report->rows[RETENTION_OF_FAILED]),
              LOG_U("cancelled", report->rows[RETENTION_OF_CANCELLED]),
              LOG_U("dead", report->rows[RETENTION_OF_DEAD] + report->rows[RETENTION_OF_OPEN]),
              LOG_U("audit", report->rows[RETENTION_OF_AUDIT]),
              LOG_U("workers", report->rows[RETENTION_OF_WORKERS]), LOG_U("events", report->events),
              LOG_U("bytes", report->bytes), LOG_U("orphans", report->orphans),
              LOG_U("stay", report->failed));
}

/* ---- a pass ---------------------------------------------------------------------------------- */

/* true: the end was asked for. */
static bool rest(void *arg, int64_t ms)
{
    struct keeper *keeper = arg;
    int64_t until_ms = clock_mono_ms() + ms;
    pthread_mutex_lock(&keeper->lock);
    while (!keeper->stopping && clock_cond_wait_until(&keeper->wake, &keeper->lock, until_ms))
        continue;
    bool stopping = keeper->stopping;
    pthread_mutex_unlock(&keeper->lock);
    return stopping;
}

/* A time in the future is from before a clock was set back. */
static bool is_due(const struct retention_row *row, int64_t last_us, int64_t period_us)
{
    int64_t since_us = row->now_us - last_us;
    return last_us == 0 || since_us >= period_us || since_us < -period_us;
}

static bool sweep_is_due(const struct keeper *keeper, const struct retention_row *row)
{
    int64_t period_us = (int64_t)keeper->cfg->retention_sweep_hours * HOUR_US;
    return period_us > 0 && is_due(row, row->swept_us, period_us);
}

static enum err_code make_pass(struct keeper *keeper, const struct retention_row *row,
                               struct err *err)
{
    FD_AUTO int archive_fd = -1;
    struct retention_pass pass = {.store = keeper->store,
                                  .policy = &keeper->policy,
                                  .holder = keeper->me,
                                  .lease_ms = (int64_t)keeper->cfg->fleet_lease_ms * LEASES,
                                  .sweeps = sweep_is_due(keeper, row),
                                  .rest = rest,
                                  .arg = keeper};
    struct err end = {0};
    enum err_code rc = fs_open_dir(keeper->cfg->archive_root, false, &archive_fd, err);
    if (rc == ERR_OK)
        rc = retention_store_lead(pass.store, &pass.holder, pass.lease_ms, err);
    if (rc)
        return rc;
    pass.archive_fd = archive_fd;
    rc = retention_run(&pass, err);
    count_report(&pass.report);
    if (pass.report.untold > 0)
        log_event(LOG_WARN, "retention.untold", LOG_U("jobs", pass.report.untold));
    if (rc == ERR_OK)
        log_report(&pass.report);
    if (retention_store_done(pass.store, &pass.holder, rc == ERR_OK, &end) != ERR_OK)
        log_event(LOG_DEBUG, "retention.lead.kept", LOG_S("detail", end.text));
    return rc;
}

static void look(struct keeper *keeper)
{
    struct retention_row row = {0};
    struct err err = {0};
    enum err_code rc = retention_store_get(keeper->store, &row, &err);
    int64_t period_us = (int64_t)keeper->cfg->retention_interval_s * 1000000;
    if (rc == ERR_OK && is_due(&row, row.ended_us, period_us))
        rc = make_pass(keeper, &row, &err);
    if (rc && rc != ERR_IN_USE && rc != ERR_STOPPING)
        log_err("retention.failed", &err);
    show_sizes(keeper);
}

static void *keeper_main(void *arg)
{
    struct keeper *keeper = arg;
    int64_t period_ms = (int64_t)keeper->cfg->retention_interval_s * 1000;
    (void)pthread_setname_np(pthread_self(), "retention");
    while (!rest(keeper, period_ms < LOOK_MS ? period_ms : LOOK_MS))
        look(keeper);
    store_thread_end();
    return NULL;
}

enum err_code keeper_start(struct store *store, const struct config *cfg,
                           struct keeper **ret_keeper, struct err *err)
{
    struct keeper *keeper = calloc(1, sizeof(*keeper));
    if (!keeper)
        return err_set(err, ERR_NOMEM, "no memory for the keeper");
    keeper->store = store;
    keeper->cfg = cfg;
    keeper->policy = retention_policy_of(cfg);
    keeper->me = uuid_v7();
    pthread_mutex_init(&keeper->lock, NULL);
    clock_cond_init(&keeper->wake);
    int failed_with = pthread_create(&keeper->thread, NULL, keeper_main, keeper);
    if (failed_with) {
        free(keeper);
        return err_set_errno(err, ERR_NOMEM, failed_with, "cannot start the keeper");
    }
    *ret_keeper = keeper;
    return ERR_OK;
}

void keeper_stop(struct keeper *keeper)
{
    if (!keeper)
        return;
    pthread_mutex_lock(&keeper->lock);
    keeper->stopping = true;
    pthread_cond_broadcast(&keeper->wake);
    pthread_mutex_unlock(&keeper->lock);
    (void)pthread_join(keeper->thread, NULL);
    pthread_cond_destroy(&keeper->wake);
    pthread_mutex_destroy(&keeper->lock);
    free(keeper);
}
