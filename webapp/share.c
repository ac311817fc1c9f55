/* SPDX-License-Identifier: MIT */
#include "webapp/share.h"

#include "common/base/clock.h"

#include <pthread.h>

#define BUCKETS 1024u
#define SECOND_US 1000000

struct share {
    struct share *next;
    char key[SHARE_KEY_SIZE];
    size_t length;
    unsigned holders;
    uint32_t under_way;
    uint64_t bytes;
    int64_t room_us; /* a request takes a second's part of it, a second fills it */
    int64_t filled_us;
};

struct shares {
    struct share_limits limits;
    pthread_mutex_t lock;
    struct share *buckets[BUCKETS]; /* lock; and all in them */
};

enum err_code shares_open(const struct share_limits *limits, struct shares **ret_shares,
                          struct err *err)
{
    struct shares *shares = calloc(1, sizeof(*shares));
    if (!shares)
        return err_set(err, ERR_NOMEM, "out of memory");
    shares->limits = *limits;
    pthread_mutex_init(&shares->lock, NULL);
    *ret_shares = shares;
    return ERR_OK;
}

void shares_close(struct shares *shares)
{
    if (!shares)
        return;
    for (size_t i = 0; i < BUCKETS; i++) {
        while (shares->buckets[i]) {
            struct share *share = shares->buckets[i];
            shares->buckets[i] = share->next;
            free(share);
        }
    }
    pthread_mutex_destroy(&shares->lock);
    free(shares);
}

static size_t bucket_of(struct sv key)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < key.len; i++)
        hash = (hash ^ (unsigned char)key.ptr[i]) * 16777619u;
    return hash % BUCKETS;
}

/* Nobody holds it, and a new one would be no other. */
static bool is_spent(const struct share *share, int64_t now_us)
{
    return share->holders == 0 && now_us - share->filled_us >= SECOND_US;
}

/* The share of a bucket with this key; drops those on the way that are not needed any more. */
static struct share *find(struct share **at, struct sv key, int64_t now_us)
{
    struct share *found = NULL;
    while (*at) {
        struct share *share = *at;
        if (share->length == key.len && memcmp(share->key, key.ptr, key.len) == 0)
            found = share;
        if (share == found || !is_spent(share, now_us)) {
            at = &share->next;
            continue;
        }
        *at = share->next;
        free(share);
    }
    return found;
}

static struct share *add(struct share **bucket, struct sv key, int64_t now_us)
{
    struct share *share = calloc(1, sizeof(*share));
    if (!share)
        return NULL;
    memcpy(share->key, key.ptr, key.len);
    share->length = key.len;
    share->room_us = SECOND_US;
    share->filled_us = now_us;
    share->next = *bucket;
    *bucket = share;
    return share;
}

struct share *share_get(struct shares *shares, struct sv key)
{
    int64_t now_us = clock_mono_us();
    if (key.len > SHARE_KEY_SIZE)
        key.len = SHARE_KEY_SIZE;
    struct share **bucket = &shares->buckets[bucket_of(key)];
    pthread_mutex_lock(&shares->lock);
    struct share *share = find(bucket, key, now_us);
    if (!share)
        share = add(bucket, key, now_us);
    if (share)
        share->holders++;
    pthread_mutex_unlock(&shares->lock);
    return share;
}

void share_put(struct shares *shares, struct share *share)
{
    if (!share)
        return;
    pthread_mutex_lock(&shares->lock);
    share->holders--;
    pthread_mutex_unlock(&shares->lock);
}

unsigned share_holders(struct shares *shares, const struct share *share)
{
    if (!share)
        return 0;
    pthread_mutex_lock(&shares->lock);
    unsigned holders = share->holders;
    pthread_mutex_unlock(&shares->lock);
    return holders;
}

/* ---- what is taken: the lock is held ----------------------------------------------------------
 */

static enum err_code take_turn(const struct shares *shares, struct share *share, struct err *err)
{
    int64_t now_us = clock_mono_us();
    int64_t price_us = SECOND_US / shares->limits.per_s;
    share->room_us += now_us - share->filled_us;
    share->filled_us = now_us;
    if (share->room_us > SECOND_US)
        share->room_us = SECOND_US;
    if (share->room_us < price_us)
        return err_set(
            err, ERR_RATE,
            "more than %u requests in a second from one %s (web.requests_per_s_per_%s): send "
            "them more slowly",
            shares->limits.per_s, shares->limits.whose, shares->limits.whose);
    share->room_us -= price_us;
    return ERR_OK;
}

static enum err_code take_bytes(const struct shares *shares, struct share *share, uint64_t bytes,
                                struct err *err)
{
    if (bytes > shares->limits.bytes - share->bytes)
        return err_set(err, ERR_RATE, "bodies under way from one %s would pass %llu bytes",
                       shares->limits.whose, (unsigned long long)shares->limits.bytes);
    share->bytes += bytes;
    return ERR_OK;
}

enum err_code share_enter(struct shares *shares, struct share *share, uint64_t bytes,
                          struct err *err)
{
    if (!share)
        return ERR_OK;
    pthread_mutex_lock(&shares->lock);
    enum err_code rc = take_turn(shares, share, err);
    if (rc == ERR_OK && share->under_way >= shares->limits.at_once)
        rc = err_set(err, ERR_RATE, "%u requests of one %s are under way", share->under_way,
                     shares->limits.whose);
    if (rc == ERR_OK)
        rc = take_bytes(shares, share, bytes, err);
    if (rc == ERR_OK)
        share->under_way++;
    pthread_mutex_unlock(&shares->lock);
    return rc;
}

enum err_code share_hold(struct shares *shares, struct share *share, uint64_t bytes,
                         struct err *err)
{
    if (!share)
        return ERR_OK;
    pthread_mutex_lock(&shares->lock);
    enum err_code rc = take_bytes(shares, share, bytes, err);
    pthread_mutex_unlock(&shares->lock);
    return rc;
}

void share_leave(struct shares *shares, struct share *share, uint64_t bytes)
{
    if (!share)
        return;
    pthread_mutex_lock(&shares->lock);
    share->under_way--;
    share->bytes -= bytes;
    pthread_mutex_unlock(&shares->lock);
}
