/* SPDX-License-Identifier: MIT */
#include "webapp/why_text_internal.h"

#include <signal.h>

static void text_of_id(const struct why_facts *facts, char ret_id[UUID_TEXT_SIZE])
{
    (void)uuid_text(&facts->job->id, ret_id);
}

static void add_output_step(const struct why_facts *facts, struct buf *text, const char *flag)
{
    char id[UUID_TEXT_SIZE];
    text_of_id(facts, id);
    buf_addf(text, ". All that it wrote there: 'sluice output %s%s'", id, flag);
}

static void add_again(const struct why_facts *facts, struct buf *text, const char *when)
{
    char id[UUID_TEXT_SIZE];
    char what[100];
    text_of_id(facts, id);
    (void)snprintf(what, sizeof(what), "run it again%s", when);
    next_step_add(text, facts->asker, next_step_role(facts->asker, facts->job->owner), what,
                  "sluice resubmit %s", id);
}

/* " after 3.2 s": what its command took. */
static void add_took(const struct why_facts *facts, struct buf *text)
{
    const struct job *job = facts->job;
    if (job->started_us == 0 || job->ended_us <= job->started_us)
        return;
    buf_add_text(text, " after ");
    why_add_span(text, job->ended_us - job->started_us);
}

/* ---- what it wrote -------------------------------------------------------------------------- */

/* Strangers' words: marked as such. */
static void add_last_line(const struct why_facts *facts, struct buf *text)
{
    const struct job *job = facts->job;
    if (facts->last_line) {
        buf_addf(text, ". The last line of its stderr, in its own words: \"%s\"", facts->last_line);
        add_output_step(facts, text, " --stderr");
    } else if (job->errs.total_bytes > 0) {
        add_output_step(facts, text, " --stderr");
    } else if (job->out.total_bytes > 0) {
        buf_add_text(text, ". It wrote nothing to stderr, but to stdout");
        add_output_step(facts, text, "");
    } else {
        buf_add_text(text, ". It wrote nothing: let it say more");
        add_again(facts, text, " then");
    }
}

static bool is_cut(const struct job_stream *stream)
{
    return stream->total_bytes > stream->kept_bytes;
}

static void add_cut(struct buf *text, const char *name, const struct job_stream *stream)
{
    if (is_cut(stream))
        buf_addf(text, "; of its %s %llu of %llu bytes are kept, its beginning and its end", name,
                 (unsigned long long)stream->kept_bytes, (unsigned long long)stream->total_bytes);
}

/* ---- finished ------------------------------------------------------------------------------- */

void why_tell_finished(const struct why_facts *facts, struct buf *text)
{
    const struct job *job = facts->job;
    bool cut = is_cut(&job->out) || is_cut(&job->errs);
    buf_add_text(text, "Its command ended with exit code 0");
    add_cut(text, "stdout", &job->out);
    add_cut(text, "stderr", &job->errs);
    if (cut)
        buf_add_text(text, " (worker.output_max_bytes)");
    if (job->reason[0]) {
        buf_add_text(text, "; ");
        why_add_plain_reason(facts, text);
    }
    if (!cut && !job->reason[0])
        buf_add_text(text, ", and all that was to be kept is kept");
    if (cut)
        buf_add_text(text, ". To keep all of it, let it write to a file and keep that: "
                           "'sluice submit --keep FILE'");
    if (job->reason[0])
        buf_add_text(text, ". Paths of --keep begin in its own folder, where it starts: look at "
                           "the names that it writes");
}

/* ---- cancelled ------------------------------------------------------------------------------ */

/* ", 12 s ago": when it ended. */
static void add_ago(const struct why_facts *facts, struct buf *text)
{
    int64_t ago_us = facts->why->now_us - facts->job->ended_us;
    if (facts->job->ended_us == 0 || ago_us <= 0)
        return;
    buf_add_text(text, ", ");
    why_add_span(text, ago_us);
    buf_add_text(text, " ago");
}

static void add_before(const struct why_facts *facts, struct buf *text)
{
    const struct job *job = facts->job;
    int64_t held_us = facts->why->held_us;
    if (job->started_us != 0 && job->ended_us > job->started_us) {
        buf_add_text(text, "; it had run for ");
        why_add_span(text, job->ended_us - job->started_us);
    } else if (job->started_us == 0 && held_us != 0 && job->ended_us > held_us) {
        buf_add_text(text, "; it had been held for ");
        why_add_span(text, job->ended_us - held_us);
        why_add_reason(facts, text);
    }
}

void why_tell_cancelled(const struct why_facts *facts, struct buf *text)
{
    const struct job *job = facts->job;
    buf_addf(text, "%s cancelled it %s", job->cancel_by[0] ? job->cancel_by : "Somebody",
             job->started_us ? "while it was under way" : "before it had begun");
    add_ago(facts, text);
    add_before(facts, text);
    add_again(facts, text, "");
}

/* ---- failed: its command -------------------------------------------------------------------- */

static const struct {
    int signal;
    const char *says;
} signals[] = {
    {SIGSEGV, "it crashed: a segmentation fault, which is a mistake in the program"},
    {SIGBUS, "it crashed: a bus error, often a mapped file that became shorter"},
    {SIGILL, "it crashed: an instruction that this processor does not have"},
    {SIGFPE, "it crashed: an arithmetic error such as a division by 0"},
    {SIGABRT, "it ended itself after an error that it had found (abort)"},
    {SIGSYS, "it made a system call that jobs may not make here"},
    {SIGPIPE, "it wrote to a pipe or connection that nobody read from any more"},
    {SIGKILL, "it was killed, and not by Sluice: most often by the kernel because the host, or its "
              "container, ran out of memory"},
    {SIGTERM, "it was asked to end, and not by Sluice: by itself, or by somebody on its host"},
    {SIGINT, "it was interrupted, and not by Sluice: by itself, or by somebody on its host"},
    {SIGHUP, "it was told to end, and not by Sluice: by itself, or by somebody on its host"},
};

static void add_signal(const struct why_facts *facts, struct buf *text)
{
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        if (signals[i].signal == facts->job->term_signal)
            buf_addf(text, ": %s", signals[i].says);
    }
    if (facts->job->memory_mb && facts->job->condition == JOB_COND_COMMAND_SIGNALLED)
        buf_addf(
            text,
            ". It had a limit of memory of %u MiB, at which it gets no more, and many programs "
            "do not survive that: try more with --memory-mb",
            facts->job->memory_mb);
}

/* What a shell says of the command that it ran. */
static void add_exit_code(const struct why_facts *facts, struct buf *text)
{
    int code = facts->job->has_exit_code ? facts->job->exit_code : 0;
    const char *name = code > 128 ? sigabbrev_np(code - 128) : NULL;
    if (code == 127)
        buf_add_text(text, ", a shell's word for a command that it did not find");
    else if (code == 126)
        buf_add_text(text, ", a shell's word for a file that it may not execute");
    else if (name)
        buf_addf(text, ", a shell's word for a command that a signal ended: SIG%s", name);
}

static void tell_command(const struct why_facts *facts, struct buf *text)
{
    buf_add_text(text, "It failed: its command ");
    why_add_plain_reason(facts, text);
    add_took(facts, text);
    if (facts->job->term_signal)
        add_signal(facts, text);
    else
        add_exit_code(facts, text);
    add_last_line(facts, text);
}

static void tell_memory(const struct why_facts *facts, struct buf *text)
{
    const struct job *job = facts->job;
    buf_add_text(text, "It failed: its command ");
    why_add_plain_reason(facts, text);
    buf_addf(text, ": most likely its limit of memory, %u MiB, was too low", job->memory_mb);
    if (facts->last_line)
        buf_addf(text, ". The last line of its stderr, in its own words: \"%s\"", facts->last_line);
    buf_addf(text, ". Submit it again with more: 'sluice submit --memory-mb %u'",
             job->memory_mb > UINT32_MAX / 2 ? job->memory_mb : job->memory_mb * 2);
}

/* ---- failed: all else ----------------------------------------------------------------------- */

static void tell_time(const struct why_facts *facts, struct buf *text)
{
    buf_addf(text, "It failed: it was ended after %u s, the limit of its request (maxSeconds)",
             facts->job->max_seconds);
    if (facts->job->max_seconds < facts->most_seconds)
        buf_addf(text,
                 ". Submit it again with more time: 'sluice submit --max-minutes N', at most %u "
                 "here",
                 facts->most_seconds / 60);
    else
        buf_add_text(text, ", the most that this site allows. Divide it into shorter jobs, or ask "
                           "an administrator for more (limits.max_minutes)");
    if (facts->last_line)
        buf_addf(text, ". The last line of its stderr, in its own words: \"%s\"", facts->last_line);
}

/* The condition and the reason, which names what its owner can do. */
static void tell_plain(const struct why_facts *facts, struct buf *text)
{
    buf_add_text(text, "It failed");
    if (facts->job->condition != JOB_COND_NONE) {
        buf_add_text(text, ": ");
        why_add_meaning(facts, text);
    }
    why_add_reason(facts, text);
}

static void tell_input(const struct why_facts *facts, struct buf *text)
{
    tell_plain(facts, text);
    add_again(facts, text, " when that is put right");
}

static void tell_room(const struct why_facts *facts, struct buf *text)
{
    tell_plain(facts, text);
    buf_add_text(text, ". That is no fault of the job: ask an administrator of this site to make "
                       "room there");
    add_again(facts, text, " then");
}

static void tell_given_up(const struct why_facts *facts, struct buf *text)
{
    tell_plain(facts, text);
    add_again(facts, text, " when that has changed");
}

static why_tell_fn *const failures[JOB_CONDITION_COUNT] = {
    [JOB_COND_COMMAND_FAILED] = tell_command,
    [JOB_COND_COMMAND_SIGNALLED] = tell_command,
    [JOB_COND_MEMORY_LIMIT] = tell_memory,
    [JOB_COND_TIME_LIMIT] = tell_time,
    [JOB_COND_INPUT_FAILED] = tell_input,
    [JOB_COND_OUTPUT_DISK_FULL] = tell_room,
    [JOB_COND_SYSTEM_UNAVAILABLE] = tell_given_up,
    [JOB_COND_APPLICATION_UNAVAILABLE] = tell_given_up,
    [JOB_COND_QUOTA_EXCEEDED] = tell_given_up,
    [JOB_COND_CONNECTION_FAILED] = tell_given_up,
    [JOB_COND_AUTHENTICATION_FAILED] = tell_given_up,
    [JOB_COND_QUEUE_UNAVAILABLE] = tell_given_up,
    [JOB_COND_DATABASE_UNAVAILABLE] = tell_given_up,
};

void why_tell_failed(const struct why_facts *facts, struct buf *text)
{
    why_tell_fn *tell = failures[facts->job->condition];
    if (!tell || !facts->job->reason[0])
        tell = tell_plain;
    tell(facts, text);
}
