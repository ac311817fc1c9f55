/* SPDX-License-Identifier: MIT */
#include "common/base/spare.h"
#include "webapp/job_view.h"
#include "webapp/listen_impl.h"

#define FRAME_LIMIT ((size_t)64 * 1024)

/* ---- one event ------------------------------------------------------------------------------- */

bool listen_frame(const struct feed_event *event, struct buf *out)
{
    json_t *view = job_event_view(&event->event);
    json_object_set_new(view, "job", view_uuid(&event->event.job));
    json_object_set_new(view, "name", view_text(event->name));
    json_object_set_new(view, "owner", view_text(event->owner));
    json_object_set_new(view, "queue", view_text(event->queue));
    char *text = view ? spare_text(json_dumps(view, JSON_COMPACT)) : NULL;
    json_decref(view);
    if (!text)
        return false;
    buf_addf(out, "id: %llu\nevent: job\ndata: ", (unsigned long long)event->event.seq);
    buf_add_text(out, text);
    buf_add_text(out, "\n\n");
    free(text);
    return !out->failed;
}

void ring_event_of(const struct feed_event *event, struct ring_event *ret_event)
{
    *ret_event = (struct ring_event){
        .seq = event->event.seq, .job = event->event.job, .to = event->event.to};
    (void)snprintf(ret_event->tenant, sizeof(ret_event->tenant), "%s", event->tenant);
    (void)snprintf(ret_event->queue, sizeof(ret_event->queue), "%s", event->queue);
    (void)snprintf(ret_event->kind, sizeof(ret_event->kind), "%s", event->event.kind);
}

static bool is_of_type(const struct listen_filter *filter, const struct ring_event *event)
{
    if (!filter->states && filter->kind_count == 0)
        return true;
    if (filter->states >> event->to & 1u)
        return true;
    for (size_t i = 0; i < filter->kind_count; i++) {
        if (strcmp(filter->kinds[i], event->kind) == 0)
            return true;
    }
    return false;
}

bool listen_matches(const struct listen_filter *filter, const struct ring_event *event)
{
    return strcmp(filter->tenant, event->tenant) == 0 &&
           (!filter->has_job || uuid_eq(&filter->job, &event->job)) &&
           (!filter->queue[0] || strcmp(filter->queue, event->queue) == 0) &&
           is_of_type(filter, event);
}

/* ---- many ------------------------------------------------------------------------------------ */

const struct ring_event *ring_at(const struct ring *ring, size_t place)
{
    return &ring->events[(ring->first + place) % RING_EVENTS];
}

size_t ring_after(const struct ring *ring, uint64_t seq)
{
    size_t low = 0;
    size_t high = ring->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ring_at(ring, middle)->seq > seq)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void drop_oldest(struct ring *ring)
{
    struct ring_event *oldest = &ring->events[ring->first];
    ring->tail = oldest->seq;
    ring->bytes -= oldest->frame_len;
    free(oldest->frame);
    *oldest = (struct ring_event){0};
    ring->first = (ring->first + 1) % RING_EVENTS;
    ring->count--;
}

bool ring_add(struct ring *ring, const struct feed_event *event)
{
    BUF_AUTO struct buf frame = BUF_INIT(FRAME_LIMIT);
    struct ring_event fresh;
    if (!ring->events)
        ring->events = calloc(RING_EVENTS, sizeof(*ring->events));
    if (!ring->events || !listen_frame(event, &frame))
        return false;
    ring_event_of(event, &fresh);
    fresh.frame_len = frame.len;
    while (ring->count > 0 &&
           (ring->count == RING_EVENTS || ring->bytes + fresh.frame_len > RING_BYTES))
        drop_oldest(ring);
    fresh.frame = buf_take(&frame);
    ring->bytes += fresh.frame_len;
    ring->events[(ring->first + ring->count) % RING_EVENTS] = fresh;
    ring->count++;
    return true;
}

void ring_clear(struct ring *ring, uint64_t tail)
{
    while (ring->count > 0)
        drop_oldest(ring);
    ring->tail = tail;
}

void ring_done(struct ring *ring)
{
    ring_clear(ring, 0);
    free(ring->events);
    *ring = (struct ring){0};
}
