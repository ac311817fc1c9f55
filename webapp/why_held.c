/* SPDX-License-Identifier: MIT */
#include "webapp/why_text_internal.h"

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
