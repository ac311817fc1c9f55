/* SPDX-License-Identifier: MIT */
#include "readers/recovery/lost.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/store/rows.h"
#include "readers/recovery/stats.h"

#define LOOKS_PER_LEASE 2
#define PAUSES_PER_LEASE 8   /* between two samples */
#define PAUSE_LEAST_MS 500   /* twice as long as a message waits at a worker without a slot */
#define AGES_PER_LEASE 4     /* of the last message of a job that gets another */
#define MARGINS_PER_LEASE 10 /* see lost_decide() */
#define LOAD_PERCENT 5       /* of the time a look may take, with a very long queue */
#define FIND_MAX 16384u      /* jobs of a queue that one look sends */
#define SAMPLES_MAX 6        /* of a queue whose messages are being sent */
#define SAMPLE_MS 30
#define DEPTH_MS 2000

struct mark { /* of a queue at the look before */
    char tenant[TENANT_SIZE];
    char queue[QUEUE_NAME_SIZE];
    int64_t passed_us;
};

struct suspect { /* a queue that seems to lack messages */
    const struct recovery_lead *lead;
    char queue[QUEUE_NAME_SIZE];
    enum bus_queue_type type;
    int64_t before_us;
    struct lost_sample first;
    bool absent; /* the broker has no such queue */
};

struct lost {
    struct lost_config cfg;
    int64_t lease_ms;
    int64_t due_ms;
    struct rows marks; /* of the last look */
    /* Of this look: */
    struct rows fresh;
    struct rows suspects;
    int64_t took_ms; /* in the database */
    bool more;       /* a queue has more jobs to send than one look does */
    bool stop;
};

struct lost *lost_new(const struct lost_config *cfg)
{
    struct lost *lost = calloc(1, sizeof(*lost));
    if (!lost)
        return NULL;
    lost->cfg = *cfg;
    lost->lease_ms = cfg->site->cfg->fleet_lease_ms;
    lost->marks = lost->fresh = ROWS_OF(struct mark);
    lost->suspects = ROWS_OF(struct suspect);
    return lost;
}

void lost_free(struct lost *lost)
{
    if (!lost)
        return;
    rows_done(&lost->marks);
    rows_done(&lost->fresh);
    rows_done(&lost->suspects);
    free(lost);
}

int64_t lost_due_ms(const struct lost *lost)
{
    return lost->due_ms;
}

static int64_t margin_us(const struct lost *lost)
{
    return lost->lease_ms * 1000 / MARGINS_PER_LEASE;
}

static int64_t age_us(const struct lost *lost)
{
    return lost->lease_ms * 1000 / AGES_PER_LEASE;
}

/* ---- samples -------------------------------------------------------------------------------- */

/* A queue that is not there has no message. */
static enum err_code read_depth(struct lost *lost, const char *tenant, const char *queue,
                                struct lost_sample *sample, bool *ret_absent, struct err *err)
{
    char name[BUS_NAME_SIZE];
    uint32_t ready = 0;
    uint32_t consumers = 0;
    enum err_code rc =
        bus_queue_depth(lost->cfg.site->test.publisher, bus_submit_queue(tenant, queue, name),
                        clock_mono_ms() + DEPTH_MS, &ready, &consumers, err);
    *ret_absent = rc == ERR_NOT_FOUND;
    if (rc == ERR_NOT_FOUND) {
        err_clear(err);
        rc = ERR_OK;
    }
    if (ready > sample->ready)
        sample->ready = ready;
    if (consumers > sample->consumers)
        sample->consumers = consumers;
    return rc;
}

static enum err_code read_queues(struct lost *lost, const struct lost_look *look,
                                 struct lost_queues *ret_queues, struct err *err)
{
    int64_t began_ms = clock_mono_ms();
    enum err_code rc = lost_store_look(lost->cfg.site->test.store, look, ret_queues, err);
    lost->took_ms += clock_mono_ms() - began_ms;
    return rc;
}

static void put_rows(struct lost_sample *sample, const struct lost_queue *queue, bool complete)
{
    sample->waiting = queue->waiting;
    sample->unsent = queue->unsent;
    sample->passed_us = queue->passed_us;
    sample->moved = queue->claims_head > 0 || !complete;
}

/* Messages that were not sent for a while are on their way: first the relay sends them, then it
 * can be seen what is lacking. */
static bool relay_is_behind(const struct lost *lost, const struct lost_queue *queue)
{
    return queue->unsent_us > age_us(lost);
}

/* ---- first samples -------------------------------------------------------------------------- */

static int64_t passed_before(const struct lost *lost, const char *tenant, const char *queue)
{
    const struct mark *marks = lost->marks.items;
    for (size_t i = 0; i < lost->marks.count; i++) {
        if (strcmp(marks[i].queue, queue) == 0 && strcmp(marks[i].tenant, tenant) == 0)
            return marks[i].passed_us;
    }
    return 0;
}

static bool was_passed(const struct lost *lost, const struct lost_queue *queue, int64_t before_us)
{
    return before_us > 0 && queue->passed_us > before_us && queue->oldest_us > 0 &&
           queue->oldest_us < before_us - margin_us(lost);
}

static enum err_code look_at_queue(struct lost *lost, const struct recovery_lead *lead,
                                   const struct lost_queue *queue, struct err *err)
{
    struct suspect suspect = {.lead = lead};
    struct mark mark = {.passed_us = queue->passed_us};
    memcpy(mark.tenant, lead->tenant, sizeof(mark.tenant));
    memcpy(mark.queue, queue->name, sizeof(mark.queue));
    enum err_code rc = rows_add(&lost->fresh, &mark, err);
    if (rc || queue->waiting == 0 || relay_is_behind(lost, queue))
        return rc;
    put_rows(&suspect.first, queue, true);
    rc = read_depth(lost, lead->tenant, queue->name, &suspect.first, &suspect.absent, err);
    suspect.before_us = passed_before(lost, lead->tenant, queue->name);
    bool lacks = queue->waiting > suspect.first.ready;
    if (rc || (!lacks && !suspect.absent && !was_passed(lost, queue, suspect.before_us)))
        return rc;
    memcpy(suspect.queue, queue->name, sizeof(suspect.queue));
    if (!bus_queue_type_parse(sv_of(queue->type), &suspect.type))
        suspect.type = BUS_QUORUM;
    return rows_add(&lost->suspects, &suspect, err);
}

static enum err_code look_at_tenant(struct lost *lost, const struct recovery_lead *lead,
                                    uint64_t *ret_head, struct err *err)
{
    const struct lost_look look = {.tenant = lead->tenant};
    struct lost_queues queues = {0};
    enum err_code rc = read_queues(lost, &look, &queues, err);
    for (size_t i = 0; i < queues.count && rc == ERR_OK; i++)
        rc = look_at_queue(lost, lead, &queues.items[i], err);
    *ret_head = queues.head;
    free(queues.items);
    return rc;
}

/* ---- new messages --------------------------------------------------------------------------- */

static void publish(struct lost *lost, struct outbox_list *messages)
{
    for (size_t i = 0; i < messages->count; i++) {
        const struct outbox_row *row = &messages->items[i];
        const struct outbox_message message = {.outbox_id = row->id,
                                               .job = row->job,
                                               .epoch = row->epoch,
                                               .tenant = row->tenant,
                                               .queue = row->queue,
                                               .queue_type = row->queue_type};
        outbox_send(lost->cfg.site->outbox, &message);
    }
    free(messages->items);
    *messages = (struct outbox_list){0};
}

static enum err_code resend(struct lost *lost, const struct recovery_lead *lead,
                            const struct lost_jobs *jobs, uint64_t *ret_sent, struct err *err)
{
    enum err_code rc = ERR_OK;
    for (size_t from = 0; from < jobs->count && rc == ERR_OK && !lost->stop; from += LOST_AT_ONCE) {
        size_t rest = jobs->count - from;
        struct outbox_list messages = {0};
        const struct lost_resend batch = {.lead = lead,
                                          .jobs = jobs->items + from,
                                          .count = rest < LOST_AT_ONCE ? rest : LOST_AT_ONCE,
                                          .age_us = age_us(lost)};
        rc = lost_store_resend(lost->cfg.site->test.store, &batch, &messages, err);
        *ret_sent += messages.count;
        publish(lost, &messages);
        lost->stop = lost->cfg.pause(lost->cfg.arg, 0);
    }
    return rc;
}

static enum err_code find_and_resend(struct lost *lost, const struct suspect *suspect,
                                     uint64_t count, int64_t before_us, uint64_t *ret_sent,
                                     struct err *err)
{
    struct lost_jobs jobs = {0};
    const struct lost_search search = {.tenant = suspect->lead->tenant,
                                       .queue = suspect->queue,
                                       .age_us = age_us(lost),
                                       .before_us = before_us,
                                       .limit = count < FIND_MAX ? (uint32_t)count : FIND_MAX};
    if (count == 0)
        return ERR_OK;
    enum err_code rc = lost_store_find(lost->cfg.site->test.store, &search, &jobs, err);
    if (rc == ERR_OK)
        rc = resend(lost, suspect->lead, &jobs, ret_sent, err);
    lost->more = lost->more || (rc == ERR_OK && count > FIND_MAX && jobs.count == FIND_MAX);
    free(jobs.items);
    return rc;
}

/* A queue that was deleted by hand; without it the messages would have no way to go. */
static enum err_code declare(struct lost *lost, const struct suspect *suspect, struct err *err)
{
    char name[BUS_NAME_SIZE];
    return bus_queue_declare(lost->cfg.site->test.publisher,
                             bus_submit_queue(suspect->lead->tenant, suspect->queue, name),
                             suspect->type, clock_mono_ms() + DEPTH_MS, err);
}

static enum err_code repair(struct lost *lost, const struct suspect *suspect,
                            const struct lost_sample *second, struct err *err)
{
    const struct lost_verdict verdict =
        lost_decide(&suspect->first, second, suspect->before_us, margin_us(lost));
    uint64_t sent = 0;
    enum err_code rc = suspect->absent ? declare(lost, suspect, err) : ERR_OK;
    if (rc == ERR_OK)
        rc = find_and_resend(lost, suspect, verdict.sure, 0, &sent, err);
    if (rc == ERR_OK)
        rc = find_and_resend(lost, suspect, verdict.passed, verdict.before_us, &sent, err);
    if (sent == 0)
        return rc;
    stats_lost(sent);
    log_event(LOG_WARN, "recovery.messages.lost", LOG_S("tenant", suspect->lead->tenant),
              LOG_S("queue", suspect->queue), LOG_U("sent_again", sent),
              LOG_U("waiting", second->waiting), LOG_U("ready", second->ready),
              LOG_B("queue_was_gone", suspect->absent));
    return rc;
}

/* ---- second samples ------------------------------------------------------------------------- */

/* The depth before the rows and after them: the larger number, so that messages which came or were
 * taken meanwhile do not look lost. *ret_found false: nothing can be said now. */
static enum err_code read_sample(struct lost *lost, const struct suspect *suspect, uint64_t head,
                                 struct lost_sample *ret_sample, bool *ret_found, struct err *err)
{
    const char *tenant = suspect->lead->tenant;
    const struct lost_look look = {.tenant = tenant, .after = head};
    struct lost_queues queues = {0};
    struct lost_sample sample = {0};
    bool absent = false;
    bool found = false;
    enum err_code rc = read_depth(lost, tenant, suspect->queue, &sample, &absent, err);
    if (rc == ERR_OK)
        rc = read_queues(lost, &look, &queues, err);
    for (size_t i = 0; i < queues.count && rc == ERR_OK && !found; i++) {
        found = strcmp(queues.items[i].name, suspect->queue) == 0 &&
                !relay_is_behind(lost, &queues.items[i]);
        if (found)
            put_rows(&sample, &queues.items[i], queues.complete);
    }
    free(queues.items);
    if (rc == ERR_OK && found)
        rc = read_depth(lost, tenant, suspect->queue, &sample, &absent, err);
    *ret_sample = sample;
    *ret_found = found;
    return rc;
}

/* Messages on their way to the broker look lost for a moment: while there are any, the queue is
 * looked at several times. */
static enum err_code confirm(struct lost *lost, const struct suspect *suspect, uint64_t head,
                             struct err *err)
{
    struct lost_sample second = {0};
    struct lost_sample more = {0};
    bool found = false;
    enum err_code rc = read_sample(lost, suspect, head, &second, &found, err);
    more = second;
    for (int i = 1; i < SAMPLES_MAX && rc == ERR_OK && found && !lost->stop && more.unsent > 0 &&
                    !second.moved;
         i++) {
        lost->stop = lost->cfg.pause(lost->cfg.arg, clock_mono_ms() + SAMPLE_MS);
        rc = read_sample(lost, suspect, head, &more, &found, err);
        lost_join(&second, &more);
    }
    return rc || !found || lost->stop ? rc : repair(lost, suspect, &second, err);
}

/* ---- one look ------------------------------------------------------------------------------- */

/* Keeps the first failure. */
static void note(struct lost *lost, const struct recovery_lead *lead, const struct err *failure,
                 struct err *err)
{
    if (failure->code == ERR_FENCED)
        lost->cfg.fenced(lost->cfg.arg, lead);
    else if (failure->code && !err->code)
        *err = *failure;
}

static void look_at_all(struct lost *lost, const struct recovery_lead *leads, size_t count,
                        uint64_t *heads, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        struct err failure = {0};
        (void)!look_at_tenant(lost, &leads[i], &heads[i], &failure);
        note(lost, &leads[i], &failure, err);
    }
}

static void confirm_all(struct lost *lost, const struct recovery_lead *leads, const uint64_t *heads,
                        struct err *err)
{
    const struct suspect *suspects = lost->suspects.items;
    int64_t pause_ms = lost->lease_ms / PAUSES_PER_LEASE;
    if (lost->suspects.count == 0)
        return;
    if (pause_ms < PAUSE_LEAST_MS)
        pause_ms = PAUSE_LEAST_MS;
    lost->stop = lost->cfg.pause(lost->cfg.arg, clock_mono_ms() + pause_ms);
    for (size_t i = 0; i < lost->suspects.count && !lost->stop; i++) {
        struct err failure = {0};
        (void)!confirm(lost, &suspects[i], heads[suspects[i].lead - leads], &failure);
        note(lost, suspects[i].lead, &failure, err);
    }
}

static void begin(struct lost *lost)
{
    rows_clear(&lost->fresh);
    rows_clear(&lost->suspects);
    lost->took_ms = 0;
    lost->more = false;
    lost->stop = false;
}

static void end(struct lost *lost)
{
    const struct rows last = lost->marks;
    int64_t rest_ms = lost->lease_ms / LOOKS_PER_LEASE;
    if (rest_ms < lost->took_ms * 100 / LOAD_PERCENT)
        rest_ms = lost->took_ms * 100 / LOAD_PERCENT;
    lost->marks = lost->fresh;
    lost->fresh = last;
    lost->due_ms = clock_mono_ms() + (lost->more ? 0 : rest_ms);
}

enum err_code lost_run(struct lost *lost, const struct recovery_lead *leads, size_t count,
                       struct err *err)
{
    uint64_t *heads = calloc(count + 1, sizeof(*heads));
    if (!heads)
        return err_set(err, ERR_NOMEM, "no memory for a list of tenants");
    begin(lost);
    look_at_all(lost, leads, count, heads, err);
    confirm_all(lost, leads, heads, err);
    end(lost);
    free(heads);
    return err->code;
}
