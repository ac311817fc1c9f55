/* SPDX-License-Identifier: MIT */
#include "webapp/why_text_internal.h"

#include "common/base/shown_url.h"
#include "common/model/job_request.h"

#define ENDS_S 1 /* beyond the grace: until its end is on record */

/* What a worker does for a job beside its command: inputs, shortages, a cancellation. */

static const struct job_input *first_remote(const struct job_request *request, size_t *ret_count)
{
    const struct job_input *first = NULL;
    *ret_count = 0;
    for (size_t i = 0; i < request->input_count; i++) {
        if (!request->inputs[i].source_url)
            continue;
        first = first ? first : &request->inputs[i];
        *ret_count += 1;
    }
    return first;
}

void why_add_inputs(const struct why_facts *facts, struct buf *text)
{
    const struct job *job = facts->job;
    struct job_request *request = NULL;
    struct err err = {0};
    size_t count = 0;
    char shown[SHOWN_URL_SIZE];
    if (job->status != JOB_STAGING_INPUTS || !job->request ||
        job_request_parse(sv_of(job->request), &request, &err) != ERR_OK)
        return;
    const struct job_input *input = first_remote(request, &count);
    if (input && count == 1)
        buf_addf(text, " (%.80s from %s; it may take %u s, worker.stage_timeout_ms)",
                 input->target_path, shown_url(input->source_url, shown), facts->stage_s);
    else if (input)
        buf_addf(text,
                 " (%zu, the first is %.80s from %s; each may take %u s, "
                 "worker.stage_timeout_ms)",
                 count, input->target_path, shown_url(input->source_url, shown), facts->stage_s);
    job_request_free(request);
}

void why_add_delay(const struct why_facts *facts, struct buf *text)
{
    const struct why *why = facts->why;
    if (why->delayed_us == 0)
        return;
    buf_add_text(text, ". It is delayed: ");
    why_add_span(text, why->now_us - why->delayed_us);
    buf_addf(text, " ago %s", why->delay);
    if (auth_has_role(facts->asker, ROLE_ADMIN))
        buf_add_text(text, ". Make room on that host, or stop its worker: another one of the queue "
                           "takes the job then");
    else
        buf_add_text(text, ". Ask an administrator of this site to make room there");
}

void why_add_cancel(const struct why_facts *facts, struct buf *text)
{
    const struct job *job = facts->job;
    const struct why *why = facts->why;
    if (!job->cancel_requested)
        return;
    buf_addf(text, ". %s asked to cancel it", job->cancel_by[0] ? job->cancel_by : "Somebody");
    if (why->asked_us != 0) {
        buf_add_text(text, " ");
        why_add_span(text, why->now_us - why->asked_us);
        buf_add_text(text, " ago");
    }
    if (job->status != JOB_RUNNING) {
        buf_add_text(text, ", and it ends when its worker has stopped it");
        return;
    }
    int64_t left_us =
        why->asked_us + (int64_t)(facts->grace_ms + ENDS_S * 1000) * 1000 - why->now_us;
    buf_addf(text,
             ": it was sent SIGTERM, and what ignores that is killed %u ms later "
             "(worker.grace_ms)",
             facts->grace_ms);
    if (why->asked_us != 0 && left_us > 0) {
        buf_add_text(text, ", within ");
        why_add_span(text, left_us);
    }
}
