/* SPDX-License-Identifier: MIT */
#include "worker/stats.h"

struct metric stat_outcomes = METRIC_COUNTER_BY("sluice_jobs_ended_total", "Jobs ended by state.",
                                                "status", "FINISHED", "FAILED", "CANCELLED");
struct metric stat_deliveries = METRIC_COUNTER_BY(
    "sluice_deliveries_total", "Deliveries by what was done with them.", "verdict", "unparsable",
    "unknown", "ended", "held", "claimed", "adopted", "deferred", "taken_over", "given_back");
struct metric stat_stale =
    METRIC_COUNTER("sluice_stale_deliveries_total", "Messages of a former epoch, or doubled.");
struct metric stat_redeliveries =
    METRIC_COUNTER("sluice_redeliveries_total", "Deliveries that somebody was given before.");
struct metric stat_fenced =
    METRIC_COUNTER("sluice_fenced_writes_total", "Writes refused: the job had another owner.");
struct metric stat_losses =
    METRIC_COUNTER("sluice_losses_total", "Runs that the infrastructure ended.");
struct metric stat_blocks =
    METRIC_COUNTER("sluice_jobs_blocked_total", "Jobs that were given to recovery.");
struct metric stat_adopted_runs =
    METRIC_COUNTER("sluice_adopted_runs_total", "Runs found in the runner and gone on with.");
struct metric stat_beats = METRIC_COUNTER("sluice_beats_total", "Beats committed.");
struct metric stat_slots = METRIC_GAUGE("sluice_slots", "Jobs that the worker runs at once.");
struct metric stat_busy =
    METRIC_GAUGE("sluice_slots_busy", "Jobs at work, from the claim to the end of the run.");
struct metric stat_finishing =
    METRIC_GAUGE("sluice_jobs_finishing", "Jobs whose run has ended and whose end is written.");
struct metric stat_waiting =
    METRIC_GAUGE("sluice_deliveries_waiting", "Deliveries that wait for a slot.");
struct metric stat_claim = METRIC_HISTOGRAM("sluice_claim_seconds", "Time to commit a claim.");
struct metric stat_queue_wait =
    METRIC_HISTOGRAM("sluice_queue_wait_seconds", "From submission to the first claim.");
struct metric stat_run = METRIC_HISTOGRAM("sluice_run_seconds", "Wall-clock time of runs.");
struct metric stat_commit =
    METRIC_HISTOGRAM("sluice_terminal_commit_seconds", "Time to commit the end of a job.");

void stats_count_slots(void *arg, const struct slots_counts *counts)
{
    (void)arg;
    metric_set(&stat_busy, counts->working);
    metric_set(&stat_finishing, counts->finishing);
    metric_set(&stat_waiting, counts->waiting);
}

void stats_add(void)
{
    struct metric *const all[] = {
        &stat_outcomes, &stat_deliveries, &stat_stale,        &stat_redeliveries, &stat_fenced,
        &stat_losses,   &stat_blocks,     &stat_adopted_runs, &stat_beats,        &stat_slots,
        &stat_busy,     &stat_finishing,  &stat_waiting,      &stat_claim,        &stat_queue_wait,
        &stat_run,      &stat_commit,
    };
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        metrics_add(all[i]);
}
