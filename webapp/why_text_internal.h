/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_WHY_TEXT_INTERNAL_H
#define WEBAPP_WHY_TEXT_INTERNAL_H

/* why_text_internal: what the files of why_text share: why_waiting.c (waits for a slot),
 * why_active.c and why_step.c (owned by a worker), why_held.c (held or paused) and why_ended.c.
 * Threads: any. Memory: none. */

#include "webapp/next_step.h"
#include "webapp/why_text.h"

#define SECOND_US INT64_C(1000000)

typedef void why_tell_fn(const struct why_facts *facts, struct buf *text);

why_tell_fn why_tell_active;
why_tell_fn why_tell_waiting;
why_tell_fn why_tell_blocked;
why_tell_fn why_tell_paused;
why_tell_fn why_tell_finished;
why_tell_fn why_tell_cancelled;
why_tell_fn why_tell_failed;

/* "3.2 s", "5 min", "2 h 10 min", "4 d 3 h" */
void why_add_span(struct buf *text, int64_t us);
/* "14:02:11 UTC", of another day "2026-11-22 14:02 UTC" */
void why_add_clock(struct buf *text, int64_t at_us, int64_t now_us);
/* " for 3.2 s": since it came to its state; nothing if that is not known. */
void why_add_since(const struct why_facts *facts, struct buf *text);
/* The condition as a part of a sentence. */
void why_add_condition(enum job_condition condition, struct buf *text);
void why_add_meaning(const struct why_facts *facts, struct buf *text);
void why_add_plain_reason(const struct why_facts *facts, struct buf *text);
void why_add_reason(const struct why_facts *facts, struct buf *text); /* " (the reason)" */
const char *why_plural(uint32_t count);
/* A next step that the owner of the job and operators may take: "sluice VERB ID". */
void why_add_job_step(const struct why_facts *facts, struct buf *text, const char *what,
                      const char *verb);
/* Of a job that was lost too often: with whom and when, and what to look at. */
void why_add_poison(const struct why_facts *facts, struct buf *text);

/* why_step.c: " (a from http://host/a; ...)" while inputs are fetched; a shortage of its host; who
 * asked to cancel it. Nothing if it is not so. */
void why_add_inputs(const struct why_facts *facts, struct buf *text);
void why_add_delay(const struct why_facts *facts, struct buf *text);
void why_add_cancel(const struct why_facts *facts, struct buf *text);

#endif
