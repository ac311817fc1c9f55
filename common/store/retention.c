/* SPDX-License-Identifier: MIT */
#include "common/store/retention.h"

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/fs.h"
#include "common/base/log.h"
#include "common/store/retention_impl.h"
#include "common/store/tenant_store.h"

#include <fcntl.h>

#define DAY_US INT64_C(86400000000)
#define HOUR_US INT64_C(3600000000)
#define ROWS_AT_ONCE 200    /* of what is no job */
#define EVENTS_AT_ONCE 5000 /* in one transaction, unless they are of one job */

/* ---- policy ---------------------------------------------------------------------------------- */

struct retention_policy retention_policy_of(const struct config *cfg)
{
    return (struct retention_policy){
        .days =
            {
#define RETENTION(id, name, state, what) [RETENTION_OF_##id] = cfg->retention_##name##_days,
#include "common/store/retention.def"
#undef RETENTION
            },
        .key_hours = cfg->limits_idempotency_hours,
        .untold_s = cfg->webhook_give_up_s,
        .load_percent = cfg->retention_load_percent,
    };
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* A job that ended before this was submitted before it: its key is forgotten (an hour is for the
 * sweeper that forgets keys; it may be late, or know another time), and no message of it waits. */
static int64_t job_limit(const struct retention_policy *policy, const struct retention_row *row,
                         int64_t limit_us)
{
    limit_us = least(limit_us, row->now_us - (int64_t)(policy->key_hours + 1) * HOUR_US);
    if (row->key_us > 0)
        limit_us = least(limit_us, row->key_us);
    return row->outbox_us > 0 ? least(limit_us, row->outbox_us) : limit_us;
}

static int64_t plain_limit(const struct retention_policy *policy, enum retention_kind kind,
                           const struct retention_row *row, int64_t before_us)
{
    bool is_job = retention_state(kind) != NULL;
    if (before_us > 0)
        return is_job ? job_limit(policy, row, before_us) : 0;
    if (policy->days[kind] == 0)
        return 0;
    int64_t limit_us = row->now_us - (int64_t)policy->days[kind] * DAY_US;
    return is_job ? job_limit(policy, row, limit_us) : limit_us;
}

int64_t retention_untold_limit(const struct retention_policy *policy, enum retention_kind kind,
                               const struct retention_row *row, int64_t before_us)
{
    int64_t limit_us =
        plain_limit(policy, kind, row, before_us) - (int64_t)policy->untold_s * 1000000;
    return limit_us > 0 ? limit_us : 0;
}

/* Events with a later number may have an earlier time, by less than an hour. */
int64_t retention_limit(const struct retention_policy *policy, enum retention_kind kind,
                        const struct retention_row *row, int64_t before_us)
{
    int64_t limit_us = plain_limit(policy, kind, row, before_us);
    int64_t untold_us = retention_untold_limit(policy, kind, row, before_us);
    if (limit_us == 0 || row->hook_us == 0 || !retention_state(kind))
        return limit_us;
    int64_t told_us = row->hook_us - HOUR_US;
    return least(limit_us, told_us > untold_us ? told_us : untold_us);
}

int64_t retention_orphan_limit(const struct retention_policy *policy,
                               const struct retention_row *row)
{
    int64_t limit_us = row->now_us;
    for (int kind = 0; kind < RETENTION_KIND_COUNT; kind++) {
        if (retention_state((enum retention_kind)kind))
            limit_us = least(limit_us, retention_limit(policy, (enum retention_kind)kind, row, 0));
    }
    return limit_us;
}

/* ---- a pause between batches ----------------------------------------------------------------- */

enum err_code retention_rest(struct retention_pass *pass, int64_t began_ms, struct err *err)
{
    int64_t took_ms = clock_mono_ms() - began_ms + 1;
    uint32_t load = pass->policy->load_percent;
    int64_t rest_ms = took_ms * (100 - load) / load;
    enum err_code rc = ERR_OK;
    do { /* a long pause must not cost the lead */
        int64_t part_ms = least(rest_ms, pass->lease_ms / 3);
        if (pass->rest && pass->rest(pass->arg, part_ms))
            return err_set(err, ERR_STOPPING, "the end was asked for");
        rest_ms = pass->rest ? rest_ms - part_ms : 0;
        if (!pass->is_dry)
            rc = retention_store_lead(pass->store, &pass->holder, pass->lease_ms, err);
    } while (rc == ERR_OK && rest_ms > 0);
    return rc;
}

/* ---- jobs ------------------------------------------------------------------------------------ */

/* false: it could not be removed, and is told. */
static bool remove_output(struct retention_pass *pass, int tenant_fd, const struct uuid *id)
{
    char text[UUID_TEXT_SIZE];
    struct err err = {0};
    uint64_t bytes = 0;
    struct err ignored = {0};
    enum err_code rc = ERR_OK;
    (void)!fs_tree_size(tenant_fd, uuid_text(id, text), &bytes, &ignored); /* or not counted */
    if (!pass->is_dry)
        rc = fs_remove_tree(tenant_fd, text, &err);
    if (rc) {
        pass->report.failed++;
        log_event(LOG_WARN, "retention.output.stays", LOG_S("job", text),
                  LOG_S("detail", err.text));
        return false;
    }
    pass->report.bytes += bytes;
    return true;
}

/* The first *count of ids are then those whose output is gone, and so may go themselves. */
static enum err_code remove_outputs(struct retention_pass *pass, const char *tenant,
                                    struct uuid *ids, size_t *count, struct err *err)
{
    FD_AUTO int fd = -1;
    size_t gone = 0;
    enum err_code rc =
        fs_open_beneath(pass->archive_fd, tenant, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, &fd, err);
    if (rc == ERR_NOT_FOUND) { /* no job of the tenant has any */
        err_clear(err);
        return ERR_OK;
    }
    for (size_t i = 0; rc == ERR_OK && i < *count; i++) {
        if (remove_output(pass, fd, &ids[i]))
            ids[gone++] = ids[i];
    }
    *count = gone;
    return rc;
}

static enum err_code remove_batch(struct retention_pass *pass,
                                  const struct retention_search *search, struct uuid *ids,
                                  size_t count, struct err *err)
{
    struct retention_removed removed = {0};
    enum err_code rc = remove_outputs(pass, search->tenant, ids, &count, err);
    FAULT("retention.output.removed");
    if (rc || count == 0)
        return rc;
    if (pass->is_dry) {
        removed.jobs = count;
        rc = retention_store_count_events(pass->store, ids, count, &removed.events, err);
    } else {
        rc = retention_store_remove_jobs(pass->store, ids, count, search->limit_us, &removed, err);
    }
    if (rc)
        return rc;
    pass->report.rows[search->kind] += removed.jobs;
    pass->report.events += removed.events;
    pass->report.untold += removed.untold;
    return ERR_OK;
}

/* How many of the ids one transaction may take: a history may be long. */
static enum err_code fit_batch(struct retention_pass *pass, const struct uuid *ids, size_t *count,
                               struct err *err)
{
    uint64_t events = 0;
    enum err_code rc = retention_store_count_events(pass->store, ids, *count, &events, err);
    while (rc == ERR_OK && events > EVENTS_AT_ONCE && *count > 1) {
        *count = (*count + 1) / 2;
        rc = retention_store_count_events(pass->store, ids, *count, &events, err);
    }
    return rc;
}

static enum err_code remove_found(struct retention_pass *pass,
                                  const struct retention_search *search, struct uuid *ids,
                                  size_t count, struct err *err)
{
    enum err_code rc = ERR_OK;
    for (size_t done = 0, part = 0; rc == ERR_OK && done < count; done += part) {
        int64_t began_ms = clock_mono_ms();
        part = count - done;
        rc = fit_batch(pass, ids + done, &part, err);
        if (rc == ERR_OK)
            rc = remove_batch(pass, search, ids + done, part, err);
        if (rc == ERR_OK)
            rc = retention_rest(pass, began_ms, err);
    }
    return rc;
}

static enum err_code remove_jobs(struct retention_pass *pass, struct retention_search *search,
                                 struct err *err)
{
    struct uuid ids[RETENTION_AT_ONCE];
    size_t count = RETENTION_AT_ONCE;
    enum err_code rc = ERR_OK;
    while (rc == ERR_OK && count == RETENTION_AT_ONCE) {
        rc = retention_store_find(pass->store, search, ids, &count, err);
        if (rc || count == 0)
            return rc;
        search->after = ids[count - 1];
        rc = remove_found(pass, search, ids, count, err);
    }
    return rc;
}

static uint64_t count_jobs(const struct retention_report *report)
{
    uint64_t jobs = 0;
    for (int kind = 0; kind < RETENTION_KIND_COUNT; kind++)
        jobs += retention_state((enum retention_kind)kind) ? report->rows[kind] : 0;
    return jobs;
}

/* What went is told also if the pass ends here. */
static enum err_code tell(const struct retention_pass *pass, const char *tenant, uint64_t jobs,
                          enum err_code rc, struct err *err)
{
    struct err failed = {0};
    if (!pass->went || jobs == 0)
        return rc;
    enum err_code told = pass->went(pass, tenant, jobs, &failed);
    if (rc || told == ERR_OK)
        return rc;
    *err = failed;
    return told;
}

static enum err_code remove_of_tenant(struct retention_pass *pass, const char *tenant,
                                      const struct retention_row *row, struct err *err)
{
    enum err_code rc = ERR_OK;
    uint64_t before = count_jobs(&pass->report);
    for (int i = 0; rc == ERR_OK && i < RETENTION_KIND_COUNT; i++) {
        enum retention_kind kind = (enum retention_kind)i;
        struct retention_search search = {.tenant = tenant, .kind = kind};
        if (!retention_state(kind))
            continue;
        search.limit_us = retention_limit(pass->policy, kind, row, pass->before_us);
        search.untold_us = retention_untold_limit(pass->policy, kind, row, pass->before_us);
        if (search.limit_us > 0)
            rc = remove_jobs(pass, &search, err);
    }
    return tell(pass, tenant, count_jobs(&pass->report) - before, rc, err);
}

static enum err_code remove_of_tenants(struct retention_pass *pass, const struct retention_row *row,
                                       struct err *err)
{
    struct tenant_name *tenants = NULL;
    size_t count = 0;
    if (pass->tenant)
        return remove_of_tenant(pass, pass->tenant, row, err);
    enum err_code rc = tenant_store_list(pass->store, &tenants, &count, err);
    for (size_t i = 0; rc == ERR_OK && i < count; i++)
        rc = remove_of_tenant(pass, tenants[i].text, row, err);
    free(tenants);
    return rc;
}

/* ---- what is no job -------------------------------------------------------------------------- */

static enum err_code remove_rows(struct retention_pass *pass, enum retention_kind kind,
                                 int64_t limit_us, struct err *err)
{
    uint64_t rows = ROWS_AT_ONCE;
    enum err_code rc = ERR_OK;
    if (pass->is_dry)
        return retention_store_count(pass->store, kind, limit_us, &pass->report.rows[kind], err);
    while (rc == ERR_OK && rows == ROWS_AT_ONCE) {
        int64_t began_ms = clock_mono_ms();
        rc = retention_store_remove(pass->store, kind, limit_us, ROWS_AT_ONCE, &rows, err);
        if (rc || rows == 0)
            return rc;
        pass->report.rows[kind] += rows;
        rc = retention_rest(pass, began_ms, err);
    }
    return rc;
}

static enum err_code remove_others(struct retention_pass *pass, const struct retention_row *row,
                                   struct err *err)
{
    enum err_code rc = ERR_OK;
    for (int i = 0; rc == ERR_OK && i < RETENTION_KIND_COUNT; i++) {
        enum retention_kind kind = (enum retention_kind)i;
        int64_t limit_us = retention_limit(pass->policy, kind, row, 0);
        if (!retention_state(kind) && limit_us > 0)
            rc = remove_rows(pass, kind, limit_us, err);
    }
    return rc;
}

enum err_code retention_run(struct retention_pass *pass, struct err *err)
{
    struct retention_row row = {0};
    pass->report = (struct retention_report){0};
    enum err_code rc = retention_store_get(pass->store, &row, err);
    if (rc == ERR_OK && !pass->is_dry)
        rc = retention_store_begun(pass->store, &pass->holder, err);
    bool is_ours = rc == ERR_OK && retention_archive_is_ours(pass, row.created_us);
    if (rc == ERR_OK)
        rc = remove_of_tenants(pass, &row, err);
    if (rc == ERR_OK && !pass->tenant && pass->before_us == 0)
        rc = remove_others(pass, &row, err);
    if (rc == ERR_OK && pass->sweeps)
        rc = retention_sweep(pass, is_ours ? retention_orphan_limit(pass->policy, &row) : 0, err);
    return rc;
}
