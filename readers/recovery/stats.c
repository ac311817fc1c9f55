/* SPDX-License-Identifier: MIT */
#include "readers/recovery/stats.h"

#define REPAIR_RELAYED STRAY_KIND_COUNT
#define REPAIR_LOST (STRAY_KIND_COUNT + 1)

struct metric stat_tests = METRIC_COUNTER_BY("sluice_recovery_tests_total", "Tests by answer.",
                                             "result", "clear", "not_yet", "cannot_tell", "never");
struct metric stat_released =
    METRIC_COUNTER("sluice_recovery_released_total", "Blocked jobs that were let go on.");
struct metric stat_given_up =
    METRIC_COUNTER("sluice_recovery_given_up_total", "Blocked jobs that were ended as FAILED.");
struct metric stat_leading =
    METRIC_GAUGE("sluice_recovery_leading", "Tenants whose recovery this process leads.");
struct metric stat_takeovers =
    METRIC_COUNTER("sluice_recovery_takeovers_total", "Times that this process began to lead.");
struct metric stat_fenced =
    METRIC_COUNTER("sluice_fenced_writes_total", "Writes refused: another leads.");
static struct metric repairs = METRIC_COUNTER_BY(
    "sluice_reconcile_repairs_total", "What the reconciler put right.",
    "kind", [STRAY_BLOCKED] = "blocked_without_row", [STRAY_ROW] = "row_without_blocked",
    [STRAY_OWNED] = "owner_gone", [REPAIR_RELAYED] = "outbox", [REPAIR_LOST] = "message_lost");

/* In the order of cause.def. */
static const enum job_condition conditions[] = {
#define CAUSE(condition, tester, setting) JOB_COND_##condition,
#include "common/service/cause.def"
#undef CAUSE
};
static struct metric blocked = {.name = "sluice_blocked_jobs",
                                .help = "Blocked jobs of the site by what they wait for.",
                                .type = METRIC_IS_GAUGE,
                                .label = "condition",
                                .values = {
#define CAUSE(condition, tester, setting) #condition,
#include "common/service/cause.def"
#undef CAUSE
                                }};

void stats_add(void)
{
    struct metric *const all[] = {&stat_tests,     &stat_released, &stat_given_up, &stat_leading,
                                  &stat_takeovers, &stat_fenced,   &repairs,       &blocked};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        metrics_add(all[i]);
}

void stats_repaired(enum stray_kind kind)
{
    metric_count(&repairs, kind, 1);
}

void stats_lost(uint64_t jobs)
{
    metric_count(&repairs, REPAIR_LOST, (int64_t)jobs);
}

void stats_relayed(uint64_t messages)
{
    metric_count(&repairs, REPAIR_RELAYED,
                 (int64_t)messages - metric_value(&repairs, REPAIR_RELAYED));
}

void stats_blocked(const uint64_t counts[JOB_CONDITION_COUNT])
{
    for (size_t i = 0; i < ARRAY_LEN(conditions); i++)
        metric_count(&blocked, i, (int64_t)counts[conditions[i]] - metric_value(&blocked, i));
}
