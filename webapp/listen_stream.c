/* SPDX-License-Identifier: MIT */
/* The streams: what happens on MHD's thread, and how one begins. */
#include "webapp/listen_impl.h"

#include "common/base/clock.h"
#include "common/base/log.h"

#define BLOCK_BYTES ((size_t)4096) /* what MHD asks for at once */
#define EVENTS_TYPE "text/event-stream"
#define BEGIN_MS 2500 /* a listener waits so long for the mark of a process that has just begun */

void listener_free(struct listener *listener)
{
    buf_done(&listener->carry);
    allowance_return(&listener->hold);
    free(listener);
}

void listener_resume(struct listener *listener)
{
    if (!listener->suspended)
        return;
    listener->suspended = false;
    MHD_resume_connection(listener->mhd);
}

void listener_drop(struct listener *listener, const char *reason)
{
    buf_addf(&listener->carry,
             "id: %llu\nevent: dropped\ndata: {\"reason\":\"%s\",\"resume\":\"connect again with "
             "Last-Event-ID\"}\n\n",
             (unsigned long long)listener->seq, reason);
    listener->finished = true;
}

/* ---- what is sent ---------------------------------------------------------------------------- */

static void take_from_ring(struct listener *listener)
{
    struct listeners *all = listener->all;
    size_t place = ring_after(&all->ring, listener->seq);
    for (; place < all->ring.count && listener->carry.len < CARRY_ENOUGH; place++) {
        const struct ring_event *event = ring_at(&all->ring, place);
        listener->seq = event->seq;
        if (!listen_matches(&listener->filter, event))
            continue;
        buf_add(&listener->carry, event->frame, event->frame_len);
        all->counters.sent++;
    }
    if (place == all->ring.count && listener->seq < all->safe)
        listener->seq = all->safe;
}

bool listener_fill(struct listener *listener)
{
    struct listeners *all = listener->all;
    if (listener->seq >= all->ring.tail) {
        listener->live = true;
        take_from_ring(listener);
    } else if (listener->live) {
        all->counters.dropped++;
        listener_drop(listener, "you read more slowly than events happen");
        log_event(LOG_INFO, "events.listener.dropped", LOG_S("tenant", listener->filter.tenant),
                  LOG_U("after", listener->seq));
    }
    if (listener->carry.len == 0 && listener->beat)
        buf_addf(&listener->carry, ": nothing new\nid: %llu\n\n",
                 (unsigned long long)listener->seq);
    listener->beat = false;
    return listener->carry.len > 0;
}

static size_t send_carried(struct listener *listener, char *bytes, size_t room)
{
    size_t left = listener->carry.len - listener->sent;
    size_t count = left < room ? left : room;
    memcpy(bytes, listener->carry.ptr + listener->sent, count);
    listener->sent += count;
    if (listener->sent == listener->carry.len) { /* nothing is kept for one who waits */
        buf_done(&listener->carry);
        listener->carry = BUF_INIT(CARRY_LIMIT);
        listener->sent = 0;
    }
    listener->written_ms = clock_mono_ms();
    return count;
}

static ssize_t on_read(void *cls, uint64_t position, char *bytes, size_t room)
{
    struct listener *listener = cls;
    struct listeners *all = listener->all;
    ssize_t count = 0;
    (void)position;
    pthread_mutex_lock(&all->lock);
    if (listener->carry.len > 0 || (!listener->finished && listener_fill(listener))) {
        count = (ssize_t)send_carried(listener, bytes, room);
    } else if (listener->finished || all->stopping) {
        count = MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        listener->suspended = true;
        MHD_suspend_connection(listener->mhd);
        if (!listener->live) { /* the thread reads for him */
            all->roused = true;
            pthread_cond_signal(&all->wake);
        }
    }
    pthread_mutex_unlock(&all->lock);
    return count;
}

static void on_free(void *cls)
{
    struct listener *listener = cls;
    struct listeners *all = listener->all;
    pthread_mutex_lock(&all->lock);
    struct listener **at = &all->first;
    while (*at != listener)
        at = &(*at)->next;
    *at = listener->next;
    all->count--;
    bool busy = listener->busy;
    listener->gone = true;
    pthread_mutex_unlock(&all->lock);
    if (!busy)
        listener_free(listener);
}

/* ---- a new one ------------------------------------------------------------------------------- */

/* The lock is held. */
static bool wait_begun(struct listeners *all)
{
    int64_t until_ms = clock_mono_ms() + BEGIN_MS;
    while (!all->is_begun && !all->stopping &&
           clock_cond_wait_until(&all->begun, &all->lock, until_ms))
        continue;
    return all->is_begun;
}

static enum err_code admit(struct listeners *all, struct listener *listener, uint64_t after,
                           struct err *err)
{
    pthread_mutex_lock(&all->lock);
    bool begun = wait_begun(all);
    bool room = begun && !all->stopping;
    if (room) {
        listener->seq = after == LISTEN_FROM_NOW ? all->safe : after;
        listener->next = all->first;
        all->first = listener;
        all->count++;
        all->roused = true;
        pthread_cond_signal(&all->wake);
    }
    pthread_mutex_unlock(&all->lock);
    if (room)
        return ERR_OK;
    if (!begun)
        return err_set(err, ERR_OVERLOADED, "the events are not at hand yet: try again soon");
    return err_set(err, ERR_STOPPING, "this process is stopping: ask again");
}

enum err_code listen_start(struct request *req, const struct listen_filter *filter, uint64_t after,
                           struct err *err)
{
    struct listeners *all = req->web->listeners;
    struct listener *listener = calloc(1, sizeof(*listener));
    if (!listener)
        return err_set(err, ERR_NOMEM, "out of memory");
    listener->all = all;
    listener->mhd = server_connection(req);
    listener->filter = *filter;
    listener->who = req->who;
    listener->carry = BUF_INIT(CARRY_LIMIT);
    listener->beat = true; /* what the stream begins at is said at once */
    listener->written_ms = clock_mono_ms();
    enum err_code rc = allowance_take(all->web->allowances, ALLOWANCE_LISTENERS, &req->who, 1,
                                      &listener->hold, err);
    if (rc == ERR_OK)
        rc = admit(all, listener, after, err);
    if (rc) {
        listener_free(listener);
        return rc;
    }
    struct MHD_Response *response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES,
                                                                      on_read, listener, on_free);
    if (!response) {
        on_free(listener);
        return err_set(err, ERR_NOMEM, "out of memory");
    }
    reply_response(req, MHD_HTTP_OK, response);
    reply_header(req, "Content-Type", EVENTS_TYPE);
    reply_header(req, "Cache-Control", "no-store");
    return ERR_OK;
}
