/* SPDX-License-Identifier: MIT */
#include "readers/common/notify.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/model/retry.h"
#include "common/service/metrics.h"
#include "readers/common/mail.h"

#include <curl/curl.h>
#include <pthread.h>

#define QUEUE_MAX 64
#define MAIL_LIMIT ((size_t)16384)
#define TRIES_MAX 3
#define SUBJECT_SIZE 320

static const struct retry send_retry = {1000, 10000};

enum mail_result { MAIL_SENT, MAIL_FAILED, MAIL_HELD_BACK, MAIL_DROPPED };
static struct metric mails = METRIC_COUNTER_BY("sluice_mails_total", "Mails, by how they ended",
                                               "result", "sent", "failed", "held-back", "dropped");

void notify_metrics_add(void)
{
    metrics_add(&mails);
}

struct notify {
    const struct config *cfg;
    const char *service;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    atomic_bool stop;            /* read by the mail under way as well */
    struct buf queue[QUEUE_MAX]; /* a ring */
    size_t first, count;
    struct throttle throttle;
};

/* ---- the throttle ---------------------------------------------------------------------------- */

static struct throttle_cause *find_cause(struct throttle *throttle, const char *text)
{
    struct throttle_cause *oldest = &throttle->causes[0];
    for (size_t i = 0; i < throttle->count; i++) {
        struct throttle_cause *cause = &throttle->causes[i];
        if (strcmp(cause->text, text) == 0)
            return cause;
        if (cause->told_ms < oldest->told_ms)
            oldest = cause;
    }
    struct throttle_cause *cause =
        throttle->count < THROTTLE_CAUSES ? &throttle->causes[throttle->count++] : oldest;
    *cause = (struct throttle_cause){.told_ms = INT64_MIN};
    (void)snprintf(cause->text, sizeof(cause->text), "%s", text);
    return cause;
}

bool throttle_take(struct throttle *throttle, const char *cause_text, int64_t now_ms,
                   int64_t interval_ms, uint64_t *ret_held_back)
{
    char text[THROTTLE_CAUSE_SIZE];
    (void)snprintf(text, sizeof(text), "%s", cause_text);
    struct throttle_cause *cause = find_cause(throttle, text);
    if (cause->told_ms != INT64_MIN && now_ms - cause->told_ms < interval_ms) {
        cause->held_back++;
        return false;
    }
    *ret_held_back = cause->held_back;
    cause->held_back = 0;
    cause->told_ms = now_ms;
    return true;
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* false: the end was asked for. */
static bool pause_for(struct notify *notify, int64_t pause_ms)
{
    int64_t deadline_ms = clock_mono_ms() + pause_ms;
    (void)pthread_mutex_lock(&notify->lock);
    while (!notify->stop && clock_cond_wait_until(&notify->changed, &notify->lock, deadline_ms))
        ;
    bool stopping = notify->stop;
    (void)pthread_mutex_unlock(&notify->lock);
    return !stopping;
}

static void send_mail(struct notify *notify, struct sv mail)
{
    struct err err = {0};
    for (uint32_t tries = 1; tries <= TRIES_MAX; tries++) {
        err_clear(&err);
        if (mail_send(notify->cfg, mail, &notify->stop, &err) == ERR_OK) {
            metric_count(&mails, MAIL_SENT, 1);
            return;
        }
        if (tries < TRIES_MAX && !pause_for(notify, retry_pause_ms(&send_retry, tries)))
            break;
    }
    metric_count(&mails, MAIL_FAILED, 1);
    log_err("notify.mail.failed", &err);
}

static void *notify_main(void *arg)
{
    struct notify *notify = arg;
    (void)pthread_mutex_lock(&notify->lock);
    for (;;) {
        while (notify->count == 0 && !notify->stop)
            (void)pthread_cond_wait(&notify->changed, &notify->lock);
        if (notify->stop)
            break;
        BUF_AUTO struct buf mail = notify->queue[notify->first];
        notify->first = (notify->first + 1) % QUEUE_MAX;
        notify->count--;
        (void)pthread_mutex_unlock(&notify->lock);
        send_mail(notify, buf_sv(&mail));
        (void)pthread_mutex_lock(&notify->lock);
    }
    (void)pthread_mutex_unlock(&notify->lock);
    return NULL;
}

/* The mail is consumed. */
static void add_mail(struct notify *notify, struct buf *mail)
{
    (void)pthread_mutex_lock(&notify->lock);
    bool full = notify->count == QUEUE_MAX;
    if (!full) {
        notify->queue[(notify->first + notify->count++) % QUEUE_MAX] = *mail;
        *mail = BUF_INIT(MAIL_LIMIT);
        (void)pthread_cond_broadcast(&notify->changed);
    }
    (void)pthread_mutex_unlock(&notify->lock);
    if (full)
        metric_count(&mails, MAIL_DROPPED, 1);
    buf_done(mail);
}

/* ---- the calls ------------------------------------------------------------------------------- */

static enum err_code check(const struct config *cfg, struct err *err)
{
    if (strncmp(cfg->notify_smtp_url, "smtp://", 7) != 0 &&
        strncmp(cfg->notify_smtp_url, "smtps://", 8) != 0)
        return err_set(err, ERR_CONFIG, "notify.smtp_url is smtp://HOST[:PORT] or smtps://...");
    if (!cfg->notify_from[0] || !cfg->notify_to[0])
        return err_set(err, ERR_CONFIG,
                       "with notify.smtp_url, notify.from and notify.to are needed as well");
    return ERR_OK;
}

enum err_code notify_open(const struct config *cfg, const char *service, struct notify **ret_notify,
                          struct err *err)
{
    if (!cfg->notify_smtp_url[0])
        return ERR_OK;
    enum err_code rc = check(cfg, err);
    if (rc)
        return rc;
    struct notify *notify = calloc(1, sizeof(*notify));
    if (!notify || curl_global_init(CURL_GLOBAL_DEFAULT)) {
        free(notify);
        return err_set(err, ERR_NOMEM, "no memory for mail");
    }
    notify->cfg = cfg;
    notify->service = service;
    (void)pthread_mutex_init(&notify->lock, NULL);
    clock_cond_init(&notify->changed);
    int failed = pthread_create(&notify->thread, NULL, notify_main, notify);
    if (failed) {
        free(notify);
        return err_set_errno(err, ERR_NOMEM, failed, "starting the mail thread");
    }
    *ret_notify = notify;
    return ERR_OK;
}

void notify_close(struct notify *notify)
{
    if (!notify)
        return;
    (void)pthread_mutex_lock(&notify->lock);
    notify->stop = true;
    (void)pthread_cond_broadcast(&notify->changed);
    (void)pthread_mutex_unlock(&notify->lock);
    (void)pthread_join(notify->thread, NULL);
    for (size_t i = 0; i < notify->count; i++)
        buf_done(&notify->queue[(notify->first + i) % QUEUE_MAX]);
    metric_count(&mails, MAIL_DROPPED, (int64_t)notify->count);
    (void)pthread_cond_destroy(&notify->changed);
    (void)pthread_mutex_destroy(&notify->lock);
    free(notify);
}

static void write_text(const struct dead_message *message, const struct uuid *row,
                       enum dead_outcome outcome, const char *detail, struct buf *text)
{
    char id[UUID_TEXT_SIZE];
    char job[UUID_TEXT_SIZE] = "-";
    if (message->has_job)
        (void)uuid_text(&message->job, job);
    buf_addf(text,
             "The broker could not deliver a message.\n\n"
             "reason        %s\nqueue         %s\nrouting key   %s\ntenant        %s\n"
             "job           %s\nbytes         %llu\nwhat was done %s: %s\n\n"
             "sluice dead show %s\n",
             message->reason, message->queue_name[0] ? message->queue_name : "-",
             message->routing_key, message->tenant[0] ? message->tenant : "-", job,
             (unsigned long long)message->size_bytes, dead_outcome_text(outcome), detail,
             uuid_text(row, id));
}

void notify_dead(struct notify *notify, const struct dead_message *message, const struct uuid *row,
                 enum dead_outcome outcome, const char *detail)
{
    char cause[SUBJECT_SIZE];
    BUF_AUTO struct buf text = BUF_INIT(MAIL_LIMIT / 2);
    struct buf mail = BUF_INIT(MAIL_LIMIT);
    uint64_t held_back = 0;
    if (!notify)
        return;
    (void)snprintf(cause, sizeof(cause), "Sluice: %s, %s", message->reason, message->routing_key);
    (void)pthread_mutex_lock(&notify->lock);
    bool now = throttle_take(&notify->throttle, cause, clock_mono_ms(),
                             (int64_t)notify->cfg->notify_interval_s * 1000, &held_back);
    (void)pthread_mutex_unlock(&notify->lock);
    if (!now) {
        metric_count(&mails, MAIL_HELD_BACK, 1);
        return;
    }
    write_text(message, row, outcome, detail, &text);
    if (held_back > 0)
        buf_addf(&text, "\n%llu more of this cause came since the last mail about it.\n",
                 (unsigned long long)held_back);
    mail_write(notify->cfg, notify->service, cause, buf_text(&text), &mail);
    add_mail(notify, &mail);
}
