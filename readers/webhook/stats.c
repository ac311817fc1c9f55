/* SPDX-License-Identifier: MIT */
#include "readers/webhook/stats.h"

#include "common/base/log.h"

struct metric stat_attempts = METRIC_COUNTER_BY(
    "sluice_webhook_attempts_total", "Attempts to deliver, by outcome.",
    "outcome", [HOOK_DELIVERED] = "delivered", [HOOK_AGAIN] = "again", [HOOK_DEAD] = "dead");
struct metric stat_took =
    METRIC_HISTOGRAM("sluice_webhook_attempt_seconds", "How long one attempt to deliver took.");
struct metric stat_made =
    METRIC_COUNTER("sluice_webhook_deliveries_total", "Deliveries made of events.");
struct metric stat_leading =
    METRIC_GAUGE("sluice_webhook_leading", "1: this process sends; 0: it stands by.");
struct metric stat_behind = METRIC_GAUGE("sluice_webhook_behind_events",
                                         "Events of the history that were not looked through yet.");

/* -1 while the database cannot be asked. */
static int64_t read_waiting(void *arg)
{
    struct err err = {0};
    uint64_t count = 0;
    int64_t age_us = 0;
    return hook_waiting(arg, &count, &age_us, &err) == ERR_OK ? (int64_t)count : -1;
}

static int64_t read_age(void *arg)
{
    struct err err = {0};
    uint64_t count = 0;
    int64_t age_us = 0;
    return hook_waiting(arg, &count, &age_us, &err) == ERR_OK ? age_us / 1000000 : -1;
}

static struct metric waiting = METRIC_GAUGE_OF(
    "sluice_webhook_waiting",
    "Deliveries of the site that are due or wait for another attempt; -1: unknown", read_waiting);
static struct metric oldest =
    METRIC_GAUGE_OF("sluice_webhook_oldest_age_seconds",
                    "How long the oldest of them has been tried; -1: unknown", read_age);

void stats_add(struct store *store)
{
    struct metric *const all[] = {&stat_attempts, &stat_took, &stat_made, &stat_leading,
                                  &stat_behind,   &waiting,   &oldest};
    waiting.arg = store;
    oldest.arg = store;
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        metrics_add(all[i]);
}

void stats_attempt(const struct hook_result *result)
{
    static const char *const names[] = {"delivered", "again", "dead"};
    char id[UUID_TEXT_SIZE];
    char job[UUID_TEXT_SIZE];
    metric_count(&stat_attempts, result->outcome, 1);
    metric_observe_us(&stat_took, (int64_t)result->took_ms * 1000);
    log_event(result->outcome == HOOK_DEAD ? LOG_WARN : LOG_DEBUG, "webhook.attempt",
              LOG_S("delivery", uuid_text(&result->of->id, id)),
              LOG_S("job", uuid_text(&result->of->job, job)), LOG_S("tenant", result->of->tenant),
              LOG_S("outcome", names[result->outcome]), LOG_U("attempt", result->of->attempts + 1),
              LOG_U("status", result->http_status), LOG_U("took_ms", result->took_ms),
              LOG_S("detail", result->error));
}
