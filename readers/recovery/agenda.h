/* SPDX-License-Identifier: MIT */
#ifndef READERS_RECOVERY_AGENDA_H
#define READERS_RECOVERY_AGENDA_H

/* agenda: which cause is to be looked at next: a heap by due time, with the causes by id. One that
 * was handed out is not handed out again before agenda_done().
 * Threads: owner. Memory: agenda_free() frees; owners (of causes) are the caller's. */

#include "common/base/err.h"
#include "common/base/uuid.h"

struct agenda;

struct agenda_item {
    struct uuid id;
    void *owner;
};

struct agenda *agenda_new(void); /* NULL: no memory */
void agenda_free(struct agenda *agenda);
DEFINE_AUTO(struct agenda *, agenda_free)

/* Due at due_ms (clock_mono_ms), whatever was said before. */
MUST_USE enum err_code agenda_put(struct agenda *agenda, const struct agenda_item *item,
                                  int64_t due_ms, struct err *err);
/* Due at due_ms at the latest; one that is handed out is due again at once when it is done. */
MUST_USE enum err_code agenda_wake(struct agenda *agenda, const struct agenda_item *item,
                                   int64_t due_ms, struct err *err);
bool agenda_has(const struct agenda *agenda, const struct uuid *id);
/* Hands out one that is due at now_ms. */
bool agenda_next(struct agenda *agenda, int64_t now_ms, struct agenda_item *ret_item);
/* What was handed out is due again at due_ms; negative: forget it. */
void agenda_done(struct agenda *agenda, const struct uuid *id, int64_t due_ms);
/* Those of an owner are forgotten; the ones handed out as soon as they are done. */
void agenda_forget(struct agenda *agenda, const void *owner);
int64_t agenda_due_ms(const struct agenda *agenda); /* of the first; INT64_MAX if there is none */
size_t agenda_count(const struct agenda *agenda);

#endif
