/* SPDX-License-Identifier: MIT */
#include "readers/webhook/sender.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/service/daemon.h"
#include "common/service/watchdog.h"
#include "common/store/feed_store.h"
#include "readers/webhook/body.h"
#include "readers/webhook/lanes.h"
#include "readers/webhook/stats.h"

#define RESULTS_MAX 64 /* recorded in one transaction */
#define FAN_OUT_ROUNDS 4
#define FORGET_MS 60000
#define TROUBLE_MS 500
#define TURN_MS 120000 /* some statements, with a database that is away or slow */
#define LANE_HOLD_FIRST_MS 1000
#define LANE_HOLD_MOST_MS 60000

struct sender {
    const struct config *cfg;
    struct store *store;
    struct post_site *site;
    struct crew *crew;
    struct lanes *lanes;
    struct hook_lead lead;
    bool leads;
    int64_t beat_ms;         /* when we beat last */
    struct hook_sender seen; /* another's row, and since when it has not changed */
    int64_t seen_ms;
    struct feed_mark mark;
    uint64_t seq;  /* looked through up to here */
    uint64_t span; /* of the history at once */
    struct uuid last_lane;
    int64_t forget_ms;
    struct uuid forget_after;
    struct hook_result results[RESULTS_MAX]; /* not recorded yet */
    size_t result_count;
    bool is_troubled; /* the database's trouble was told */
    struct watchdog_loop loop;
};

enum err_code sender_open(const struct sender_config *cfg, struct sender **ret_sender,
                          struct err *err)
{
    const struct lanes_config lanes = {.most = cfg->cfg->webhook_per_receiver,
                                       .first_hold_ms = LANE_HOLD_FIRST_MS,
                                       .most_hold_ms = LANE_HOLD_MOST_MS};
    struct sender *sender = calloc(1, sizeof(*sender));
    if (!sender)
        return err_set(err, ERR_NOMEM, "out of memory");
    sender->cfg = cfg->cfg;
    sender->store = cfg->store;
    sender->site = cfg->site;
    sender->lead.holder = uuid_v7();
    enum err_code rc = lanes_open(&lanes, &sender->lanes, err);
    if (rc == ERR_OK)
        rc = crew_open(cfg->site, cfg->cfg->webhook_threads, &sender->crew, err);
    if (rc)
        sender_free(sender);
    else
        *ret_sender = sender;
    return rc;
}

static void free_results(struct sender *sender)
{
    for (size_t i = 0; i < sender->result_count; i++)
        delivery_free((struct hook_delivery *)(uintptr_t)sender->results[i].of);
    sender->result_count = 0;
}

void sender_free(struct sender *sender)
{
    if (!sender)
        return;
    watchdog_leave(&sender->loop);
    crew_free(sender->crew);
    lanes_free(sender->lanes);
    free_results(sender);
    free(sender);
}

/* ---- who sends ------------------------------------------------------------------------------- */

static bool has_changed(const struct hook_sender *a, const struct hook_sender *b)
{
    return a->fencing != b->fencing || a->beat != b->beat;
}

/* The row changed at then or later, so nobody takes over for a lease from then on. Should our own
 * statements hang for longer, what they read is old, and another may have sent what comes next. */
static void lead_since(struct sender *sender, int64_t then_ms)
{
    sender->beat_ms = then_ms;
    atomic_store(&sender->site->send_until_ms,
                 then_ms + (int64_t)sender->cfg->fleet_lease_ms / 4 * 3);
}

static enum err_code take_lead(struct sender *sender, const struct hook_sender *now,
                               struct err *err)
{
    int64_t now_ms = clock_mono_ms();
    enum err_code rc = hook_lead_take(sender->store, now, &sender->lead, err);
    if (rc == ERR_CONFLICT) { /* another standby was faster */
        err_clear(err);
        return ERR_OK;
    }
    if (rc)
        return rc;
    sender->leads = true;
    sender->seq = now->seq;
    sender->mark = (struct feed_mark){0};
    lead_since(sender, now_ms);
    metric_set(&stat_leading, 1);
    log_event(LOG_INFO, "webhook.leading", LOG_U("fencing", sender->lead.fencing),
              LOG_U("seq", sender->seq));
    return ERR_OK;
}

/* Whoever sends is there as long as his row changes; by our clock alone, so that no jump of any
 * clock makes two senders. */
static enum err_code stand_by(struct sender *sender, struct err *err)
{
    struct hook_sender now = {0};
    enum err_code rc = hook_sender_look(sender->store, &now, err);
    if (rc) { /* nobody can beat now: the lease begins anew */
        sender->seen_ms = 0;
        return rc;
    }
    if (sender->seen_ms == 0 || has_changed(&now, &sender->seen)) {
        sender->seen = now;
        sender->seen_ms = clock_mono_ms();
    }
    if (now.has_holder && clock_mono_ms() - sender->seen_ms < (int64_t)sender->cfg->fleet_lease_ms)
        return ERR_OK;
    return take_lead(sender, &now, err);
}

static enum err_code keep_lead(struct sender *sender, struct err *err)
{
    if (clock_mono_ms() - sender->beat_ms < (int64_t)sender->cfg->fleet_lease_ms / 4)
        return ERR_OK;
    int64_t now_ms = clock_mono_ms();
    enum err_code rc = hook_lead_beat(sender->store, &sender->lead, err);
    if (rc == ERR_OK)
        lead_since(sender, now_ms);
    return rc;
}

/* ---- from the history to deliveries ------------------------------------------------------------
 */

static enum err_code look_through(struct sender *sender, struct err *err)
{
    bool more = true;
    enum err_code rc = ERR_OK;
    for (int round = 0; round < FAN_OUT_ROUNDS && more && rc == ERR_OK; round++)
        rc = feed_advance(sender->store, &sender->mark, &more, err);
    if (rc || !sender->mark.is_begun)
        return rc;
    for (int round = 0; round < FAN_OUT_ROUNDS && rc == ERR_OK && sender->seq < sender->mark.safe;
         round++) {
        struct hook_fan_out out = {
            .upto = sender->mark.safe, .compose = body_write, .span = sender->span};
        rc = hook_fan_out(sender->store, &sender->lead, &out, err);
        if (rc)
            break;
        sender->seq = out.seq;
        sender->span = out.span;
        metric_count(&stat_made, 0, (int64_t)out.deliveries);
    }
    metric_set(&stat_behind,
               sender->mark.safe > sender->seq ? (int64_t)(sender->mark.safe - sender->seq) : 0);
    return rc;
}

/* ---- results --------------------------------------------------------------------------------- */

static void add_result(struct sender *sender, const struct hook_result *result, bool known)
{
    bool answered = result->http_status != 0 || result->of->lacks_secret;
    lanes_end(sender->lanes, &result->of->lane, answered || !known, clock_mono_ms());
    if (!known) { /* it is due as before, and goes out again with the same id */
        delivery_free((struct hook_delivery *)(uintptr_t)result->of);
        return;
    }
    stats_attempt(result);
    sender->results[sender->result_count++] = *result;
}

/* Waits for the first one until then. */
static void collect(struct sender *sender, int64_t until_ms)
{
    struct hook_result result;
    bool known = false;
    while (sender->result_count < RESULTS_MAX &&
           crew_take(sender->crew, sender->result_count ? 0 : until_ms, &result, &known))
        add_result(sender, &result, known);
}

static enum err_code record(struct sender *sender, struct err *err)
{
    if (sender->result_count == 0)
        return ERR_OK;
    enum err_code rc =
        hook_record(sender->store, &sender->lead, sender->results, sender->result_count, err);
    if (rc == ERR_OK)
        free_results(sender);
    return rc;
}

/* ---- sending --------------------------------------------------------------------------------- */

static enum err_code give(struct sender *sender, const struct hook_delivery *row, struct err *err)
{
    struct hook_delivery *copy = malloc(sizeof(*copy));
    if (!copy)
        return err_set(err, ERR_NOMEM, "no memory for a delivery");
    enum err_code rc = lanes_begin(sender->lanes, &row->lane, clock_mono_ms(), err);
    if (rc) {
        free(copy);
        return rc;
    }
    *copy = *row;
    crew_give(sender->crew, copy);
    return ERR_OK;
}

/* Its rows that are under way are still due in the table. */
static enum err_code send_some(struct sender *sender, const struct uuid *lane, unsigned room,
                               unsigned *ret_given, struct err *err)
{
    struct hook_delivery *rows = NULL;
    size_t count = 0;
    unsigned given = 0;
    enum err_code rc = hook_due(sender->store, lane, room + lanes_under_way(sender->lanes, lane),
                                &rows, &count, err);
    for (size_t i = 0; i < count; i++) {
        struct hook_delivery *row = &rows[i];
        bool taken = rc != ERR_OK || given == room || crew_holds(sender->crew, &row->id);
        if (!taken && !row->is_wanted)
            rc = hook_drop(sender->store, &sender->lead, &row->subscription, err);
        else if (!taken)
            rc = give(sender, row, err);
        if (taken || !row->is_wanted || rc)
            free(row->body);
        else
            given++;
    }
    free(rows);
    *ret_given = given;
    return rc;
}

static unsigned share_of(unsigned free_threads, size_t lanes)
{
    size_t share = lanes ? free_threads / lanes : 0;
    return share > 1 ? (unsigned)share : 1;
}

/* A tenant has at most three times as many threads as are free: whatever its receivers do, there is
 * one for the next tenant. */
static unsigned room_for(const struct sender *sender, const struct hook_lane *lane, unsigned left,
                         unsigned share)
{
    unsigned room = lanes_room(sender->lanes, &lane->id, clock_mono_ms());
    unsigned has = crew_has_of(sender->crew, lane->tenant);
    unsigned most = 3 * left > has ? (3 * left - has + 3) / 4 : 0;
    room = room < share ? room : share;
    return room < most ? room : most;
}

/* One lane after the other, going on behind the last one of the time before. */
static enum err_code send_due(struct sender *sender, unsigned *ret_given, struct err *err)
{
    static const struct uuid nil = {{0}};
    struct hook_lane lanes[HOOK_LANES_MAX];
    size_t count = 0;
    unsigned left = crew_free_threads(sender->crew);
    *ret_given = 0;
    if (left == 0)
        return ERR_OK;
    enum err_code rc = hook_lanes(sender->store, &sender->last_lane, lanes, &count, err);
    if (rc == ERR_OK && count == 0 && !uuid_is_nil(&sender->last_lane)) {
        sender->last_lane = nil;
        rc = hook_lanes(sender->store, &nil, lanes, &count, err);
    }
    for (size_t i = 0; i < count && left > 0 && rc == ERR_OK; i++) {
        unsigned given = 0;
        unsigned room = room_for(sender, &lanes[i], left, share_of(left, count - i));
        sender->last_lane = lanes[i].id;
        watchdog_turn(&sender->loop, TURN_MS);
        rc = keep_lead(sender, err);
        if (rc == ERR_OK && room > 0)
            rc = send_some(sender, &lanes[i].id, room, &given, err);
        left -= given;
        *ret_given += given;
    }
    return rc;
}

/* What has waited too long in the lane of a receiver that answers nobody, and what is kept no
 * longer. */
static enum err_code forget_old(struct sender *sender, struct err *err)
{
    bool more = false;
    size_t late = 0;
    int64_t began_ms = clock_mono_ms();
    if (began_ms < sender->forget_ms)
        return ERR_OK;
    enum err_code rc =
        hook_give_up(sender->store, &sender->lead, sender->cfg->webhook_give_up_s, &late, err);
    metric_count(&stat_attempts, HOOK_DEAD, (int64_t)late);
    if (rc == ERR_OK)
        rc = hook_forget(sender->store, &sender->lead, sender->cfg->webhook_keep_hours,
                         &sender->forget_after, &more, err);
    /* A third of our time at most; sooner when there is more, or where patience is short. */
    int64_t patience_ms = (int64_t)sender->cfg->webhook_give_up_s * 1000 / 2;
    int64_t pause_ms = patience_ms < FORGET_MS ? patience_ms : FORGET_MS;
    if (more || late > 0)
        pause_ms = 2 * (clock_mono_ms() - began_ms) + 1;
    sender->forget_ms = clock_mono_ms() + pause_ms;
    return rc;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static enum err_code lead_once(struct sender *sender, struct err *err)
{
    unsigned given = 0;
    enum err_code rc = record(sender, err);
    if (rc == ERR_OK)
        rc = keep_lead(sender, err);
    if (rc == ERR_OK)
        rc = look_through(sender, err);
    if (rc == ERR_OK) /* that may have taken long */
        rc = keep_lead(sender, err);
    if (rc == ERR_OK)
        rc = send_due(sender, &given, err);
    if (rc == ERR_OK)
        rc = forget_old(sender, err);
    bool busy = rc == ERR_OK && (given > 0 || sender->seq + 1 < sender->mark.safe);
    if (rc)
        (void)daemon_sleep_until(clock_mono_ms() + TROUBLE_MS);
    collect(sender, busy || rc ? 0 : clock_mono_ms() + sender->cfg->webhook_poll_ms);
    return rc;
}

/* Told once, and once when it is over. */
static void tell_trouble(struct sender *sender, enum err_code rc, const struct err *err)
{
    if (rc && !sender->is_troubled)
        log_err("webhook.trouble", err);
    else if (!rc && sender->is_troubled)
        log_event(LOG_INFO, "webhook.trouble_over");
    sender->is_troubled = rc != ERR_OK;
}

/* What is under way ends soon, and is recorded. */
static void end(struct sender *sender)
{
    struct err err = {0};
    crew_stop(sender->crew);
    while (!crew_is_idle(sender->crew)) {
        collect(sender, clock_mono_ms() + POST_STOP_MS);
        if (record(sender, &err))
            free_results(sender);
    }
    if (record(sender, &err) || hook_lead_leave(sender->store, &sender->lead, &err))
        log_err("webhook.left", &err);
}

enum err_code sender_run(struct sender *sender, struct err *err)
{
    enum err_code rc = ERR_OK;
    sender->loop.name = "webhook.sender";
    while (!daemon_stopping() && rc != ERR_FENCED) {
        err_clear(err);
        watchdog_turn(&sender->loop, TURN_MS);
        rc = sender->leads ? lead_once(sender, err) : stand_by(sender, err);
        tell_trouble(sender, rc, err);
        if (!sender->leads)
            (void)daemon_sleep_until(clock_mono_ms() + sender->cfg->webhook_poll_ms);
    }
    metric_set(&stat_leading, 0);
    watchdog_rest(&sender->loop);
    if (rc == ERR_FENCED)
        return rc;
    err_clear(err);
    if (sender->leads)
        end(sender);
    return ERR_OK;
}
