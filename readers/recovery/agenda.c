/* SPDX-License-Identifier: MIT */
#include "readers/recovery/agenda.h"

#define BUCKETS 1024u
#define OUT SIZE_MAX /* handed out: not in the heap */

struct entry {
    struct entry *next; /* of its bucket */
    struct agenda_item item;
    int64_t due_ms;
    size_t at; /* in the heap */
    bool again;
    bool forget;
};

struct agenda {
    struct entry *buckets[BUCKETS];
    struct entry **heap;
    size_t count; /* in the heap */
    size_t room;
    size_t total;
};

struct agenda *agenda_new(void)
{
    return calloc(1, sizeof(struct agenda));
}

static void drop_bucket(struct entry *entry)
{
    while (entry) {
        struct entry *next = entry->next;
        free(entry);
        entry = next;
    }
}

void agenda_free(struct agenda *agenda)
{
    if (!agenda)
        return;
    for (size_t i = 0; i < BUCKETS; i++)
        drop_bucket(agenda->buckets[i]);
    free(agenda->heap);
    free(agenda);
}

/* ---- the heap ------------------------------------------------------------------------------- */

static void place(struct agenda *agenda, size_t at, struct entry *entry)
{
    agenda->heap[at] = entry;
    entry->at = at;
}

static void rise(struct agenda *agenda, size_t at)
{
    struct entry *entry = agenda->heap[at];
    while (at > 0 && agenda->heap[(at - 1) / 2]->due_ms > entry->due_ms) {
        place(agenda, at, agenda->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    place(agenda, at, entry);
}

static void sink(struct agenda *agenda, size_t at)
{
    struct entry *entry = agenda->heap[at];
    for (size_t child = 2 * at + 1; child < agenda->count; child = 2 * at + 1) {
        if (child + 1 < agenda->count &&
            agenda->heap[child + 1]->due_ms < agenda->heap[child]->due_ms)
            child++;
        if (agenda->heap[child]->due_ms >= entry->due_ms)
            break;
        place(agenda, at, agenda->heap[child]);
        at = child;
    }
    place(agenda, at, entry);
}

static void enter(struct agenda *agenda, struct entry *entry)
{
    agenda->heap[agenda->count] = entry; /* there is room: see make_room() */
    agenda->count++;
    rise(agenda, agenda->count - 1);
}

static void leave(struct agenda *agenda, struct entry *entry)
{
    size_t at = entry->at;
    struct entry *last = agenda->heap[--agenda->count];
    entry->at = OUT;
    if (last == entry)
        return;
    place(agenda, at, last);
    rise(agenda, at);
    sink(agenda, last->at);
}

/* ---- entries -------------------------------------------------------------------------------- */

static struct entry **find(const struct agenda *agenda, const struct uuid *id)
{
    size_t bucket = 0;
    for (size_t i = 8; i < sizeof(id->bytes); i++) /* the random half */
        bucket = bucket * 31 + id->bytes[i];
    struct entry *const *at = &agenda->buckets[bucket % BUCKETS];
    while (*at && !uuid_eq(&(*at)->item.id, id))
        at = &(*at)->next;
    return (struct entry **)(uintptr_t)at;
}

static void drop(struct agenda *agenda, struct entry **at)
{
    struct entry *entry = *at;
    if (entry->at != OUT)
        leave(agenda, entry);
    *at = entry->next;
    agenda->total--;
    free(entry);
}

/* Every entry has its place, also those that are handed out. */
static bool make_room(struct agenda *agenda)
{
    if (agenda->total < agenda->room)
        return true;
    size_t room = agenda->room ? agenda->room * 2 : 64;
    struct entry **heap = reallocarray(agenda->heap, room, sizeof(struct entry *));
    if (!heap)
        return false;
    agenda->heap = heap;
    agenda->room = room;
    return true;
}

static enum err_code add(struct agenda *agenda, struct entry **at, const struct agenda_item *item,
                         int64_t due_ms, struct err *err)
{
    struct entry *entry = make_room(agenda) ? calloc(1, sizeof(*entry)) : NULL;
    if (!entry)
        return err_set(err, ERR_NOMEM, "no memory for one more cause");
    *entry = (struct entry){.item = *item, .due_ms = due_ms, .at = OUT};
    *at = entry;
    agenda->total++;
    enter(agenda, entry);
    return ERR_OK;
}

static void move_to(struct agenda *agenda, struct entry *entry, int64_t due_ms)
{
    entry->due_ms = due_ms;
    rise(agenda, entry->at);
    sink(agenda, entry->at);
}

enum err_code agenda_put(struct agenda *agenda, const struct agenda_item *item, int64_t due_ms,
                         struct err *err)
{
    struct entry **at = find(agenda, &item->id);
    if (!*at)
        return add(agenda, at, item, due_ms, err);
    if ((*at)->at != OUT)
        move_to(agenda, *at, due_ms);
    (*at)->forget = false; /* when it is done it says itself when it is due */
    return ERR_OK;
}

enum err_code agenda_wake(struct agenda *agenda, const struct agenda_item *item, int64_t due_ms,
                          struct err *err)
{
    struct entry **at = find(agenda, &item->id);
    if (!*at)
        return add(agenda, at, item, due_ms, err);
    if ((*at)->at == OUT)
        (*at)->again = true;
    else if ((*at)->due_ms > due_ms)
        move_to(agenda, *at, due_ms);
    return ERR_OK;
}

bool agenda_has(const struct agenda *agenda, const struct uuid *id)
{
    return *find(agenda, id) != NULL;
}

bool agenda_next(struct agenda *agenda, int64_t now_ms, struct agenda_item *ret_item)
{
    if (agenda->count == 0 || agenda->heap[0]->due_ms > now_ms)
        return false;
    struct entry *entry = agenda->heap[0];
    leave(agenda, entry);
    *ret_item = entry->item;
    return true;
}

void agenda_done(struct agenda *agenda, const struct uuid *id, int64_t due_ms)
{
    struct entry **at = find(agenda, id);
    if (!*at || (*at)->at != OUT)
        return;
    struct entry *entry = *at;
    if (entry->forget || (due_ms < 0 && !entry->again)) {
        drop(agenda, at);
        return;
    }
    entry->due_ms = entry->again ? 0 : due_ms;
    entry->again = false;
    enter(agenda, entry);
}

static void forget_bucket(struct agenda *agenda, struct entry **at, const void *owner)
{
    while (*at) {
        bool ours = (*at)->item.owner == owner;
        if (ours && (*at)->at != OUT) {
            drop(agenda, at);
            continue;
        }
        (*at)->forget = (*at)->forget || ours;
        at = &(*at)->next;
    }
}

void agenda_forget(struct agenda *agenda, const void *owner)
{
    for (size_t i = 0; i < BUCKETS; i++)
        forget_bucket(agenda, &agenda->buckets[i], owner);
}

int64_t agenda_due_ms(const struct agenda *agenda)
{
    return agenda->count ? agenda->heap[0]->due_ms : INT64_MAX;
}

size_t agenda_count(const struct agenda *agenda)
{
    return agenda->total;
}
