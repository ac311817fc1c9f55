/* SPDX-License-Identifier: MIT */
#include "readers/webhook/crew.h"

#include "common/base/clock.h"

#include <assert.h>
#include <pthread.h>

struct hand { /* one thread and what it has */
    struct crew *crew;
    pthread_t thread;
    bool runs;
    struct poster *poster;
    struct hook_delivery *delivery; /* lock; NULL: it is free */
    bool done;                      /* lock: result is there */
    bool known;                     /* lock */
    struct hook_result result;      /* lock */
};

struct crew {
    struct post_site *site;
    pthread_mutex_t lock;
    pthread_cond_t given;
    pthread_cond_t done;
    bool ends; /* lock */
    unsigned count;
    struct hand hands[];
};

void delivery_free(struct hook_delivery *delivery)
{
    if (!delivery)
        return;
    free(delivery->body);
    free(delivery);
}

static void *hand_main(void *arg)
{
    struct hand *hand = arg;
    struct crew *crew = hand->crew;
    (void)pthread_setname_np(pthread_self(), "post");
    (void)pthread_mutex_lock(&crew->lock);
    for (;;) {
        while ((!hand->delivery || hand->done) && !crew->ends)
            (void)pthread_cond_wait(&crew->given, &crew->lock);
        if (!hand->delivery || hand->done)
            break;
        (void)pthread_mutex_unlock(&crew->lock);
        struct hook_result result = {.of = hand->delivery};
        bool known = post(hand->poster, hand->delivery, &result);
        (void)pthread_mutex_lock(&crew->lock);
        hand->result = result;
        hand->known = known;
        hand->done = true;
        (void)pthread_cond_broadcast(&crew->done);
    }
    (void)pthread_mutex_unlock(&crew->lock);
    return NULL;
}

enum err_code crew_open(struct post_site *site, unsigned threads, struct crew **ret_crew,
                        struct err *err)
{
    struct crew *crew = calloc(1, sizeof(*crew) + threads * sizeof(crew->hands[0]));
    enum err_code rc = ERR_OK;
    if (!crew)
        return err_set(err, ERR_NOMEM, "no memory for senders");
    crew->site = site;
    (void)pthread_mutex_init(&crew->lock, NULL);
    (void)pthread_cond_init(&crew->given, NULL);
    clock_cond_init(&crew->done);
    for (unsigned i = 0; i < threads && rc == ERR_OK; i++) {
        struct hand *hand = &crew->hands[i];
        hand->crew = crew;
        crew->count = i + 1;
        rc = poster_open(site, &hand->poster, err);
        int failed = rc ? 0 : pthread_create(&hand->thread, NULL, hand_main, hand);
        hand->runs = rc == ERR_OK && failed == 0;
        if (failed)
            rc = err_set_errno(err, ERR_NOMEM, failed, "cannot start a sender's thread");
    }
    if (rc)
        crew_free(crew);
    else
        *ret_crew = crew;
    return rc;
}

void crew_stop(struct crew *crew)
{
    atomic_store(&crew->site->stop, true);
}

void crew_free(struct crew *crew)
{
    if (!crew)
        return;
    crew_stop(crew);
    (void)pthread_mutex_lock(&crew->lock);
    crew->ends = true;
    (void)pthread_cond_broadcast(&crew->given);
    (void)pthread_mutex_unlock(&crew->lock);
    for (unsigned i = 0; i < crew->count; i++) {
        struct hand *hand = &crew->hands[i];
        if (hand->runs)
            (void)pthread_join(hand->thread, NULL);
        poster_free(hand->poster);
        delivery_free(hand->delivery);
    }
    (void)pthread_cond_destroy(&crew->given);
    (void)pthread_cond_destroy(&crew->done);
    (void)pthread_mutex_destroy(&crew->lock);
    free(crew);
}

static unsigned count_free(const struct crew *crew)
{
    unsigned count = 0;
    for (unsigned i = 0; i < crew->count; i++)
        count += crew->hands[i].delivery == NULL;
    return count;
}

unsigned crew_free_threads(struct crew *crew)
{
    (void)pthread_mutex_lock(&crew->lock);
    unsigned count = count_free(crew);
    (void)pthread_mutex_unlock(&crew->lock);
    return count;
}

bool crew_is_idle(struct crew *crew)
{
    return crew_free_threads(crew) == crew->count;
}

void crew_give(struct crew *crew, struct hook_delivery *take_delivery)
{
    unsigned i = 0;
    (void)pthread_mutex_lock(&crew->lock);
    while (i < crew->count && crew->hands[i].delivery)
        i++;
    assert(i < crew->count);
    crew->hands[i].delivery = take_delivery;
    crew->hands[i].done = false;
    (void)pthread_cond_broadcast(&crew->given);
    (void)pthread_mutex_unlock(&crew->lock);
}

/* The lock is held. */
static struct hand *find_done(struct crew *crew)
{
    for (unsigned i = 0; i < crew->count; i++) {
        if (crew->hands[i].delivery && crew->hands[i].done)
            return &crew->hands[i];
    }
    return NULL;
}

bool crew_take(struct crew *crew, int64_t until_ms, struct hook_result *ret_result, bool *ret_known)
{
    (void)pthread_mutex_lock(&crew->lock);
    struct hand *hand = find_done(crew);
    while (!hand && clock_cond_wait_until(&crew->done, &crew->lock, until_ms))
        hand = find_done(crew);
    if (hand) {
        *ret_result = hand->result;
        *ret_known = hand->known;
        hand->delivery = NULL;
        hand->done = false;
    }
    (void)pthread_mutex_unlock(&crew->lock);
    return hand != NULL;
}

unsigned crew_has_of(struct crew *crew, const char *tenant)
{
    unsigned count = 0;
    (void)pthread_mutex_lock(&crew->lock);
    for (unsigned i = 0; i < crew->count; i++) {
        const struct hook_delivery *delivery = crew->hands[i].delivery;
        count += delivery && strcmp(delivery->tenant, tenant) == 0;
    }
    (void)pthread_mutex_unlock(&crew->lock);
    return count;
}

bool crew_holds(struct crew *crew, const struct uuid *delivery)
{
    bool holds = false;
    (void)pthread_mutex_lock(&crew->lock);
    for (unsigned i = 0; i < crew->count && !holds; i++)
        holds = crew->hands[i].delivery && uuid_eq(&crew->hands[i].delivery->id, delivery);
    (void)pthread_mutex_unlock(&crew->lock);
    return holds;
}
