/* SPDX-License-Identifier: MIT */
#include "webapp/why_text_internal.h"

/* ---- held ----------------------------------------------------------------------------------- */

void why_tell_blocked(const struct why_facts *facts, struct buf *text)
{
    const struct why_blocked *blocked = &facts->why->blocked;
    buf_add_text(text, "It is held");
    why_add_since(facts, text);
    buf_add_text(text, ": ");
    why_add_meaning(facts, text);
    why_add_reason(facts, text);
    if (!facts->why->has_blocked) {
        buf_add_text(text, "; sluice-recovery puts right what it waits for");
        return;
    }
    if (blocked->ramp > 0)
        buf_add_text(text, "; this has cleared, and the jobs that waited for it go on by and by");
    else if (blocked->next_in_us > 0) {
        buf_add_text(text, "; it is checked again in ");
        why_add_span(text, blocked->next_in_us);
    } else if (blocked->next_in_us > -5 * SECOND_US) {
        buf_add_text(text, "; it is being checked now");
    } else {
        buf_add_text(text, "; the check is overdue by ");
        why_add_span(text, -blocked->next_in_us);
        buf_add_text(text, ", so sluice-recovery may not be running");
    }
    if (blocked->ramp == 0 && blocked->tries > 0)
        buf_addf(text, " (%u check%s in vain so far)", blocked->tries, why_plural(blocked->tries));
}

void why_tell_paused(const struct why_facts *facts, struct buf *text)
{
    buf_add_text(text, "Somebody paused it, and it stays so until it is let go on");
    why_add_reason(facts, text);
}

/* ---- ended ---------------------------------------------------------------------------------- */

void why_tell_finished(const struct why_facts *facts, struct buf *text)
{
    (void)facts;
    buf_add_text(text, "Its command ended with exit code 0, and all that was to be kept is kept");
}

void why_tell_cancelled(const struct why_facts *facts, struct buf *text)
{
    const struct job *job = facts->job;
    buf_addf(text, "%s cancelled it %s", job->cancel_by[0] ? job->cancel_by : "Somebody",
             job->started_us ? "while it was under way" : "before it had begun");
    why_add_reason(facts, text);
}

void why_tell_failed(const struct why_facts *facts, struct buf *text)
{
    const struct job *job = facts->job;
    bool by_itself =
        job->condition == JOB_COND_COMMAND_FAILED || job->condition == JOB_COND_COMMAND_SIGNALLED;
    buf_add_text(text, "It failed");
    if (by_itself && job->reason[0]) { /* the reason has the code or the signal */
        buf_add_text(text, ": its command ");
        why_add_plain_reason(facts, text);
        return;
    }
    if (job->condition != JOB_COND_NONE) {
        buf_add_text(text, ": ");
        why_add_meaning(facts, text);
    }
    why_add_reason(facts, text);
}
