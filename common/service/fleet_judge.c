/* SPDX-License-Identifier: MIT */
#include "common/service/fleet_judge.h"

void fleet_judge_init(struct fleet_judge *judge, int64_t lease_ms)
{
    *judge = (struct fleet_judge){.lease_ms = lease_ms};
}

void fleet_judge_done(struct fleet_judge *judge)
{
    free(judge->entries);
    *judge = (struct fleet_judge){0};
}

static struct fleet_entry *find(struct fleet_judge *judge, const struct uuid *id)
{
    for (size_t i = 0; i < judge->count; i++) {
        if (uuid_eq(&judge->entries[i].id, id))
            return &judge->entries[i];
    }
    return NULL;
}

void fleet_judge_failed(struct fleet_judge *judge, const struct uuid *id)
{
    for (size_t i = 0; i < judge->count; i++) {
        if (!id || uuid_eq(&judge->entries[i].id, id))
            judge->entries[i].silent = false;
    }
}

void fleet_judge_begin(struct fleet_judge *judge, int64_t now_ms)
{
    if (judge->looked && now_ms - judge->last_look_ms > judge->lease_ms / 2)
        fleet_judge_failed(judge, NULL);
    judge->looked = true;
    judge->last_look_ms = now_ms;
    for (size_t i = 0; i < judge->count; i++)
        judge->entries[i].seen = false;
}

static enum err_code add(struct fleet_judge *judge, const struct worker_beat *row, int64_t lease_ms,
                         struct err *err)
{
    if (judge->count == judge->capacity) {
        size_t capacity = judge->capacity ? judge->capacity * 2 : 64;
        struct fleet_entry *entries = reallocarray(judge->entries, capacity, sizeof(*entries));
        if (!entries)
            return err_set(err, ERR_NOMEM, "no memory to watch %zu workers", capacity);
        judge->entries = entries;
        judge->capacity = capacity;
    }
    judge->entries[judge->count++] =
        (struct fleet_entry){.id = row->id, .beat = row->beat, .lease_ms = lease_ms, .seen = true};
    return ERR_OK;
}

enum err_code fleet_judge_beat(struct fleet_judge *judge, const struct worker_beat *row,
                               bool *ret_ask, struct err *err)
{
    struct fleet_entry *entry = find(judge, &row->id);
    int64_t lease_ms = judge->lease_ms > row->lease_ms ? judge->lease_ms : row->lease_ms;
    *ret_ask = false;
    if (!entry)
        return add(judge, row, lease_ms, err);
    entry->seen = true;
    entry->still = entry->beat == row->beat;
    if (!entry->still)
        entry->silent = false;
    entry->beat = row->beat;
    entry->lease_ms = lease_ms;
    *ret_ask = entry->still;
    return ERR_OK;
}

void fleet_judge_forget(struct fleet_judge *judge)
{
    size_t kept = 0;
    for (size_t i = 0; i < judge->count; i++) {
        if (judge->entries[i].seen)
            judge->entries[kept++] = judge->entries[i];
    }
    judge->count = kept;
}

bool fleet_judge_held(struct fleet_judge *judge, const struct uuid *id, bool held, int64_t now_ms)
{
    struct fleet_entry *entry = find(judge, id);
    if (!entry || !entry->still)
        return false;
    if (held) {
        entry->silent = false;
        return false;
    }
    if (!entry->silent) {
        entry->silent = true;
        entry->silent_ms = now_ms;
    }
    /* The beat was read when the look began: silence is known up to then, not up to now. */
    return judge->last_look_ms - entry->silent_ms >= entry->lease_ms;
}

int64_t fleet_judge_due_ms(const struct fleet_judge *judge)
{
    int64_t due_ms = INT64_MAX;
    for (size_t i = 0; i < judge->count; i++) {
        const struct fleet_entry *entry = &judge->entries[i];
        if (entry->silent && entry->silent_ms + entry->lease_ms < due_ms)
            due_ms = entry->silent_ms + entry->lease_ms;
    }
    return due_ms;
}
