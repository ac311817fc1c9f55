/* SPDX-License-Identifier: MIT */
/* The thread: it reads the history, fills the ring, and reads for those who come back. */
#include "webapp/listen_impl.h"

#include "common/base/clock.h"
#include "common/base/log.h"

#define POLL_MS 200  /* how often the history is looked at while somebody listens */
#define IDLE_MS 1000 /* and while nobody does */
#define BEAT_MS 10000
#define CHECK_MS 1000 /* how often it is seen whether the tokens of all hold */
#define REST_MS 20    /* between two looks, however much happens */
#define PAGE_ROWS 500
#define PAGES_AT_ONCE 32 /* of those who come back, between two looks at the history */

/* ---- the history ----------------------------------------------------------------------------- */

/* Moves the mark, and reads what is safe to be read if anybody listens. The lock is not held; safe
 * is written by this thread only. */
static void read_page(struct listeners *all, bool heard, struct feed_list *ret_list, bool *ret_more)
{
    struct err err = {0};
    enum err_code rc = ERR_OK;
    if (all->safe == all->mark.safe || !all->mark.is_begun) /* what was safe before has been read */
        rc = feed_advance(all->web->store, &all->mark, ret_more, &err);
    const struct feed_page page = {NULL, all->safe, all->mark.safe, PAGE_ROWS};
    if (rc == ERR_OK && heard && page.upto > page.after)
        rc = feed_read(all->web->store, &page, ret_list, &err);
    if (rc)
        log_event(LOG_DEBUG, "events.read.failed", LOG_S("detail", err.text));
    *ret_more = *ret_more && rc == ERR_OK;
}

static bool is_concerned(const struct listener *listener, const struct ring *ring, size_t from)
{
    for (size_t i = from; i < ring->count; i++) {
        if (listen_matches(&listener->filter, ring_at(ring, i)))
            return true;
    }
    return false;
}

/* Who has to be told of nothing is taken along, so that he is never behind. The lock is held. */
static void tell(struct listeners *all, uint64_t before)
{
    size_t from = ring_after(&all->ring, before);
    for (struct listener *l = all->first; l; l = l->next) {
        if (!l->suspended || !l->live)
            continue;
        if (is_concerned(l, &all->ring, from))
            listener_resume(l);
        else if (l->seq < all->safe)
            l->seq = all->safe;
    }
}

/* The lock is held. true: there is more to be read at once. */
static bool take_page(struct listeners *all, const struct feed_list *list)
{
    uint64_t before = all->safe;
    if (list->count == 0)
        return false;
    for (size_t i = 0; i < list->count; i++) {
        if (!ring_add(&all->ring, &list->items[i])) /* whoever wants it finds it in the database */
            ring_clear(&all->ring, list->items[i].event.seq);
    }
    bool whole = list->count < PAGE_ROWS;
    all->safe = whole ? all->mark.safe : list->items[list->count - 1].event.seq;
    tell(all, before);
    return !whole;
}

/* ---- those who come back --------------------------------------------------------------------- */

/* The lock is not held; carry belongs to the thread while he is busy. */
static bool read_backlog(struct listener *listener, uint64_t after, uint64_t upto,
                         uint64_t *ret_seq)
{
    const struct feed_page page = {listener->filter.tenant, after, upto, BACKLOG_ROWS};
    struct feed_list list = {0};
    struct err err = {0};
    bool whole = true;
    if (feed_read(listener->all->web->store, &page, &list, &err) != ERR_OK) {
        log_event(LOG_DEBUG, "events.backlog.failed", LOG_S("detail", err.text));
        *ret_seq = after;
        return false;
    }
    *ret_seq = list.count < BACKLOG_ROWS ? upto : list.items[list.count - 1].event.seq;
    for (size_t i = 0; i < list.count; i++) {
        struct ring_event event;
        ring_event_of(&list.items[i], &event);
        if (listen_matches(&listener->filter, &event))
            whole = listen_frame(&list.items[i], &listener->carry) && whole;
    }
    free(list.items);
    return whole;
}

/* The lock is held, and not meanwhile. false: nothing could be read. */
static bool serve_one(struct listeners *all, struct listener *listener)
{
    uint64_t after = listener->seq;
    uint64_t upto = all->safe;
    uint64_t seq = after;
    listener->busy = true;
    listener->turn = ++all->turn;
    pthread_mutex_unlock(&all->lock);
    bool good = read_backlog(listener, after, upto, &seq);
    pthread_mutex_lock(&all->lock);
    listener->busy = false;
    if (listener->gone) {
        listener_free(listener);
        return true;
    }
    listener->seq = seq;
    if (!good && seq > after) {
        buf_done(&listener->carry);
        listener->carry = BUF_INIT(CARRY_LIMIT);
        listener->seq = after;
        listener_drop(listener, "the service is short of memory");
    }
    if (listener->carry.len > 0 || listener->seq >= all->ring.tail)
        listener_resume(listener);
    return good || seq > after;
}

/* Of those who are behind the ring, the one who was served the longest time ago. */
static struct listener *next_behind(struct listeners *all)
{
    struct listener *found = NULL;
    for (struct listener *l = all->first; l; l = l->next) {
        if (l->suspended && !l->live && l->carry.len == 0 && l->seq < all->ring.tail &&
            (!found || l->turn < found->turn))
            found = l;
    }
    return found;
}

/* The lock is held, and not meanwhile. true: there is more to do at once. */
static bool serve_behind(struct listeners *all)
{
    for (int i = 0; i < PAGES_AT_ONCE && !all->stopping; i++) {
        struct listener *listener = next_behind(all);
        if (!listener || !serve_one(all, listener))
            return false;
    }
    return next_behind(all) != NULL;
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Its token has expired, or the key is gone: whoever reads slowly gets what is prepared for him,
 * and nothing behind it. The lock is held. true: it ends. */
static bool end_unheld(struct listener *listener)
{
    const char *why =
        listener->finished ? NULL : auth_ended(listener->all->web->auth, &listener->who);
    if (!why)
        return false;
    if (listener->suspended && listener->carry.len == 0)
        listener_drop(listener, why);
    listener->finished = true;
    return true;
}

/* The lock is held. */
static void look_at_times(struct listeners *all)
{
    int64_t now_ms = clock_mono_ms();
    bool check = now_ms - all->checked_ms >= CHECK_MS;
    if (check)
        all->checked_ms = now_ms;
    for (struct listener *l = all->first; l; l = l->next) {
        bool ended = check && end_unheld(l);
        if (!l->suspended || (l->carry.len > 0 && !ended))
            continue;
        if (!ended && now_ms - l->written_ms < BEAT_MS)
            continue;
        l->beat = true;
        listener_resume(l);
    }
}

/* One look; the lock is held and released meanwhile. true: look again at once. */
static bool look(struct listeners *all)
{
    struct feed_list list = {0};
    bool heard = all->count > 0;
    bool more = false;
    all->roused = false;
    pthread_mutex_unlock(&all->lock);
    if (heard)
        auth_look(all->web->auth);
    read_page(all, heard, &list, &more);
    pthread_mutex_lock(&all->lock);
    if (heard) {
        more = take_page(all, &list) || more;
    } else if (all->count == 0) { /* else: somebody came meanwhile, and wants to have it read */
        all->safe = all->mark.safe;
        ring_clear(&all->ring, all->safe);
    }
    free(list.items);
    if (all->mark.is_begun && !all->is_begun) {
        all->is_begun = true;
        pthread_cond_broadcast(&all->begun);
    }
    more = serve_behind(all) || more;
    look_at_times(all);
    return more;
}

static void *listeners_main(void *arg)
{
    struct listeners *all = arg;
    pthread_mutex_lock(&all->lock);
    while (!all->stopping) {
        bool more = look(all);
        int64_t now_ms = clock_mono_ms();
        int64_t pause_ms = all->count > 0 || !all->is_begun ? POLL_MS : IDLE_MS;
        while (!all->stopping && clock_cond_wait_until(&all->wake, &all->lock, now_ms + REST_MS))
            continue;
        while (!all->stopping && !all->roused && !more &&
               clock_cond_wait_until(&all->wake, &all->lock, now_ms + pause_ms))
            continue;
    }
    for (struct listener *l = all->first; l; l = l->next)
        listener_resume(l);
    pthread_cond_broadcast(&all->begun);
    pthread_mutex_unlock(&all->lock);
    store_thread_end();
    return NULL;
}

/* ---- calls ----------------------------------------------------------------------------------- */

void listeners_wake(struct listeners *listeners)
{
    pthread_mutex_lock(&listeners->lock);
    listeners->roused = listeners->roused || listeners->count > 0;
    pthread_cond_signal(&listeners->wake);
    pthread_mutex_unlock(&listeners->lock);
}

void listeners_counters(struct listeners *listeners, struct listen_counters *ret_counters)
{
    pthread_mutex_lock(&listeners->lock);
    *ret_counters = listeners->counters;
    ret_counters->listeners = listeners->count;
    pthread_mutex_unlock(&listeners->lock);
}

enum err_code listeners_open(struct web *web, struct listeners **ret_listeners, struct err *err)
{
    struct listeners *all = calloc(1, sizeof(*all));
    if (!all)
        return err_set(err, ERR_NOMEM, "out of memory");
    all->web = web;
    pthread_mutex_init(&all->lock, NULL);
    clock_cond_init(&all->wake);
    clock_cond_init(&all->begun);
    int rc = pthread_create(&all->thread, NULL, listeners_main, all);
    if (rc) {
        listeners_free(all);
        return err_set_errno(err, ERR_NOMEM, rc, "cannot start the listeners' thread");
    }
    all->has_thread = true;
    *ret_listeners = all;
    return ERR_OK;
}

void listeners_stop(struct listeners *listeners)
{
    if (!listeners)
        return;
    pthread_mutex_lock(&listeners->lock);
    listeners->stopping = true;
    pthread_cond_broadcast(&listeners->wake);
    pthread_mutex_unlock(&listeners->lock);
    if (listeners->has_thread)
        (void)pthread_join(listeners->thread, NULL);
    listeners->has_thread = false;
}

void listeners_free(struct listeners *listeners)
{
    if (!listeners)
        return;
    listeners_stop(listeners);
    ring_done(&listeners->ring);
    pthread_cond_destroy(&listeners->begun);
    pthread_cond_destroy(&listeners->wake);
    pthread_mutex_destroy(&listeners->lock);
    free(listeners);
}
