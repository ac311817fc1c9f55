/* SPDX-License-Identifier: MIT */
#include "worker/outcome.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>

#define MIB ((uint64_t)1024 * 1024)

/* One row per way in which a run that the job or its limits ended may have ended. */
static const struct {
    enum runner_reason reason;
    enum job_condition condition;
    const char *text;
} limit_table[] = {
    {RUNNER_WALL_LIMIT, JOB_COND_TIME_LIMIT, "ran longer than its limit of %u s"},
    {RUNNER_CPU_LIMIT, JOB_COND_CPU_LIMIT,
     "used more processor time than its limit (%u s of time)"},
    {RUNNER_FILE_LIMIT, JOB_COND_FILE_LIMIT, "wrote a file larger than its limit (after %u s)"},
};

static void fail(struct outcome *outcome, enum job_condition condition, bool attempt)
{
    outcome->state = JOB_FAILED;
    outcome->condition = condition;
    outcome->attempt = attempt;
}

PRINTF_LIKE(2, 3) static void add_text(struct outcome *outcome, const char *format, ...)
{
    va_list args;
    size_t used = strlen(outcome->reason);
    va_start(args, format);
    (void)vsnprintf(outcome->reason + used, sizeof(outcome->reason) - used, format, args);
    va_end(args);
}

/* What programs say when they got no memory: their languages' words, and the system's. */
static const char *const no_memory[] = {
    "MemoryError",   "bad_alloc",     "OutOfMemory",      "Cannot allocate memory",
    "out of memory", "Out of memory", "memory exhausted", "ENOMEM",
};

static bool says_no_memory(const char *line)
{
    for (size_t i = 0; line && i < ARRAY_LEN(no_memory); i++) {
        if (strstr(line, no_memory[i]))
            return true;
    }
    return false;
}

bool outcome_wants_last_line(const struct outcome_facts *facts)
{
    const struct runner_record *record = facts->record;
    return facts->memory_mb && record->err.kept_bytes && (record->signal || record->exit_code > 0);
}

/* A limit of memory makes allocations fail; what the program does then is its own affair. So it
 * counts as the cause when the program says so, or its peak came near it; and a signal is told
 * beside both figures, since many programs do not look whether they got memory. */
static void judge_memory(const struct outcome_facts *facts, struct outcome *outcome)
{
    uint64_t peak_mib = facts->record->max_rss_bytes / MIB;
    bool says = says_no_memory(facts->last_line);
    bool reached = facts->memory_mb &&
                   (says || facts->record->max_rss_bytes >= facts->memory_mb * MIB / 10 * 9);
    if (reached)
        outcome->condition = JOB_COND_MEMORY_LIMIT;
    if (reached || (facts->memory_mb && facts->record->signal))
        add_text(outcome, "; its peak of memory was %llu of %u MiB%s", (unsigned long long)peak_mib,
                 facts->memory_mb, says ? ", and it says that it got no more" : "");
    else if (facts->record->signal == SIGKILL)
        add_text(outcome, "; its peak of memory was %llu MiB", (unsigned long long)peak_mib);
}

static void ended_by_itself(const struct outcome_facts *facts, struct outcome *outcome)
{
    const struct runner_record *record = facts->record;
    if (record->signal) {
        const char *name = sigabbrev_np(record->signal);
        fail(outcome, JOB_COND_COMMAND_SIGNALLED, true);
        (void)snprintf(outcome->reason, sizeof(outcome->reason), "ended by signal %d (SIG%s)%s",
                       record->signal, name ? name : "?",
                       record->core_dumped ? ", core dumped" : "");
        judge_memory(facts, outcome);
    } else if (record->exit_code != 0) {
        fail(outcome, JOB_COND_COMMAND_FAILED, true);
        (void)snprintf(outcome->reason, sizeof(outcome->reason), "ended with exit code %d",
                       record->exit_code);
        judge_memory(facts, outcome);
    } else if (runner_record_output_failed(record)) {
        fail(outcome, JOB_COND_OUTPUT_DISK_FULL, true);
        (void)snprintf(outcome->reason, sizeof(outcome->reason),
                       "output-disk-full: the output could not be kept (%s)%s%.200s",
                       record->out.error[0] ? record->out.error : record->err.error,
                       facts->archive_room ? "; " : "",
                       facts->archive_room ? facts->archive_room : "");
    } else {
        outcome->state = JOB_FINISHED;
        outcome->attempt = true;
    }
}

static bool by_limit(const struct outcome_facts *facts, struct outcome *outcome)
{
    for (size_t i = 0; i < ARRAY_LEN(limit_table); i++) {
        if (limit_table[i].reason != facts->record->reason)
            continue;
        unsigned seconds = limit_table[i].reason == RUNNER_WALL_LIMIT
                               ? facts->max_seconds
                               : (unsigned)(facts->record->wall_ms / 1000);
        fail(outcome, limit_table[i].condition, true);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* the formats are those of the table */
        (void)snprintf(outcome->reason, sizeof(outcome->reason), limit_table[i].text, seconds);
#pragma GCC diagnostic pop
        return true;
    }
    return false;
}

void outcome_judge(const struct outcome_facts *facts, struct outcome *ret_outcome)
{
    const struct runner_record *record = facts->record;
    struct outcome outcome = {0};
    if (record->start_error[0]) {
        fail(&outcome, JOB_COND_START_FAILED, true);
        start_failure_tell(record, facts->program, &facts->place, outcome.reason);
    } else if (runner_reason_is_infrastructure(record->reason)) {
        outcome.lost = true;
    } else if (record->reason == RUNNER_KILLED) {
        outcome.lost = strcmp(record->note, KILL_NOTE_CANCEL) != 0;
        outcome.state = JOB_CANCELLED;
        outcome.condition = JOB_COND_CANCELLED_BY_USER;
    } else if (!by_limit(facts, &outcome)) {
        ended_by_itself(facts, &outcome);
    }
    if (outcome.lost)
        (void)snprintf(outcome.reason, sizeof(outcome.reason), "the run was ended by %s",
                       runner_reason_text(record->reason));
    *ret_outcome = outcome;
}
