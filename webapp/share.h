/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_SHARE_H
#define WEBAPP_SHARE_H

/* share: how much of the service one address, or one user, takes: requests in a second, requests at
 * once, bytes of bodies held. One table for addresses, one for users.
 * Threads: locked. Memory: a share lives while somebody holds it, and a second longer. */

#include "common/base/err.h"
#include "common/base/sv.h"

struct shares;
struct share;

#define SHARE_KEY_SIZE 224

struct share_limits {
    const char *whose; /* for people: "address", "user" */
    uint32_t per_s;    /* requests in a second; as many may come at once after a pause */
    uint32_t at_once;  /* requests under way */
    uint64_t bytes;    /* of bodies of requests under way */
};

MUST_USE enum err_code shares_open(const struct share_limits *limits, struct shares **ret_shares,
                                   struct err *err);
void shares_close(struct shares *shares); /* NULL is allowed; no share may be held */
/* Each holder puts it back. NULL: out of memory; the calls below take that for no limit. */
struct share *share_get(struct shares *shares, struct sv key);
void share_put(struct shares *shares, struct share *share);
unsigned share_holders(struct shares *shares, const struct share *share);

/* A request begins, and holds so many bytes. ERR_RATE: it must not; nothing is counted then but
 * that it came. */
MUST_USE enum err_code share_enter(struct shares *shares, struct share *share, uint64_t bytes,
                                   struct err *err);
/* It holds more. ERR_RATE. */
MUST_USE enum err_code share_hold(struct shares *shares, struct share *share, uint64_t bytes,
                                  struct err *err);
void share_leave(struct shares *shares, struct share *share, uint64_t bytes);

#endif
