/* SPDX-License-Identifier: MIT */
#include "common/auth/token_cache.h"

#include <pthread.h>

#define WAYS 4 /* places that one digest may be at */

struct entry {
    unsigned char digest[TOKEN_DIGEST_SIZE];
    uint64_t stamp; /* 0: free */
    struct identity identity;
};

struct token_cache {
    pthread_mutex_t mutex;
    size_t buckets;
    struct entry entries[]; /* buckets * WAYS */
};

enum err_code token_cache_new(size_t entries, struct token_cache **ret_cache, struct err *err)
{
    size_t buckets = entries / WAYS;
    if (entries > 0 && buckets == 0)
        buckets = 1;
    struct token_cache *cache =
        calloc(1, sizeof(*cache) + buckets * WAYS * sizeof(cache->entries[0]));
    if (!cache)
        return err_set(err, ERR_NOMEM, "out of memory for %zu tokens", entries);
    pthread_mutex_init(&cache->mutex, NULL);
    cache->buckets = buckets;
    *ret_cache = cache;
    return ERR_OK;
}

void token_cache_free(struct token_cache *cache)
{
    if (!cache)
        return;
    pthread_mutex_destroy(&cache->mutex);
    free(cache);
}

/* The places of a digest, which is as good as random. */
static struct entry *places(struct token_cache *cache, const unsigned char *digest)
{
    uint64_t hash = 0;
    memcpy(&hash, digest, sizeof(hash));
    return &cache->entries[hash % cache->buckets * WAYS];
}

bool token_cache_get(struct token_cache *cache, const unsigned char *digest,
                     struct identity *ret_identity, uint64_t *ret_stamp)
{
    bool found = false;
    if (cache->buckets == 0)
        return false;
    pthread_mutex_lock(&cache->mutex);
    const struct entry *place = places(cache, digest);
    for (size_t i = 0; i < WAYS && !found; i++) {
        if (place[i].stamp == 0 || memcmp(place[i].digest, digest, TOKEN_DIGEST_SIZE) != 0)
            continue;
        *ret_identity = place[i].identity;
        *ret_stamp = place[i].stamp;
        found = true;
    }
    pthread_mutex_unlock(&cache->mutex);
    return found;
}

/* Its own old place, else a free one, else the one that expires first. */
static struct entry *choose(struct entry *place, const unsigned char *digest)
{
    struct entry *best = &place[0];
    for (size_t i = 0; i < WAYS; i++) {
        struct entry *e = &place[i];
        if (e->stamp != 0 && memcmp(e->digest, digest, TOKEN_DIGEST_SIZE) == 0)
            return e;
        if (best->stamp == 0)
            continue;
        if (e->stamp == 0 || e->identity.expires_s < best->identity.expires_s)
            best = e;
    }
    return best;
}

void token_cache_put(struct token_cache *cache, const unsigned char *digest,
                     const struct identity *identity, uint64_t stamp)
{
    if (cache->buckets == 0)
        return;
    pthread_mutex_lock(&cache->mutex);
    struct entry *e = choose(places(cache, digest), digest);
    memcpy(e->digest, digest, TOKEN_DIGEST_SIZE);
    e->identity = *identity;
    e->stamp = stamp;
    pthread_mutex_unlock(&cache->mutex);
}

size_t token_cache_count(struct token_cache *cache)
{
    size_t count = 0;
    pthread_mutex_lock(&cache->mutex);
    for (size_t i = 0; i < cache->buckets * WAYS; i++)
        count += cache->entries[i].stamp != 0;
    pthread_mutex_unlock(&cache->mutex);
    return count;
}
