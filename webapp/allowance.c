/* SPDX-License-Identifier: MIT */
#include "webapp/allowance.h"

#include "webapp/web.h"

#include <pthread.h>

#define BUCKETS 1024u
#define KEY_SIZE (AUTH_TENANT_SIZE + AUTH_USER_SIZE + 1)

struct allowance_holder { /* a tenant, or a user as "tenant/user" */
    struct allowance_holder *next;
    char key[KEY_SIZE];
    unsigned holds;
    uint64_t amount[ALLOWANCE_KIND_COUNT];
};

struct limits {
    uint64_t user, tenant, in_all;
};

struct allowances {
    struct limits limits[ALLOWANCE_KIND_COUNT];
    pthread_mutex_t lock;
    struct allowance_holder *buckets[BUCKETS]; /* lock; and all below */
    uint64_t amount[ALLOWANCE_KIND_COUNT];
};

static const struct {
    const char *setting;
    const char *what;
} kinds[] = {
#define ALLOWANCE(kind, setting, in_all, what) {#setting, what},
#include "webapp/allowance.def"
#undef ALLOWANCE
};

static void read_limits(const struct config *cfg, struct limits *limits)
{
#define ALLOWANCE(kind, setting, in_all, what)                                                     \
    limits[ALLOWANCE_##kind] =                                                                     \
        (struct limits){cfg->web_##setting##_per_user, cfg->web_##setting##_per_tenant, in_all};
#include "webapp/allowance.def"
#undef ALLOWANCE
}

enum err_code allowances_open(const struct config *cfg, struct allowances **ret_all,
                              struct err *err)
{
    struct allowances *all = calloc(1, sizeof(*all));
    if (!all)
        return err_set(err, ERR_NOMEM, "out of memory");
    pthread_mutex_init(&all->lock, NULL);
    read_limits(cfg, all->limits);
    *ret_all = all;
    return ERR_OK;
}

void allowances_close(struct allowances *all)
{
    if (!all)
        return;
    for (size_t i = 0; i < BUCKETS; i++) {
        while (all->buckets[i]) {
            struct allowance_holder *holder = all->buckets[i];
            all->buckets[i] = holder->next;
            free(holder);
        }
    }
    pthread_mutex_destroy(&all->lock);
    free(all);
}

/* ---- holders: the lock is held ----------------------------------------------------------------
 */

static struct allowance_holder **bucket_of(struct allowances *all, const char *key)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (; *key; key++)
        hash = (hash ^ (unsigned char)*key) * 16777619u;
    return &all->buckets[hash % BUCKETS];
}

/* NULL: out of memory. Put it back with holder_put(). */
static struct allowance_holder *holder_get(struct allowances *all, const char *key)
{
    struct allowance_holder **bucket = bucket_of(all, key);
    struct allowance_holder *holder = *bucket;
    while (holder && strcmp(holder->key, key) != 0)
        holder = holder->next;
    if (!holder) {
        holder = calloc(1, sizeof(*holder));
        if (!holder)
            return NULL;
        (void)snprintf(holder->key, sizeof(holder->key), "%s", key);
        holder->next = *bucket;
        *bucket = holder;
    }
    holder->holds++;
    return holder;
}

static void holder_put(struct allowances *all, struct allowance_holder *holder)
{
    if (!holder || --holder->holds > 0)
        return;
    struct allowance_holder **at = bucket_of(all, holder->key);
    while (*at != holder)
        at = &(*at)->next;
    *at = holder->next;
    free(holder);
}

static void hold_put(struct allowance_hold *hold)
{
    holder_put(hold->all, hold->user);
    holder_put(hold->all, hold->tenant);
    *hold = (struct allowance_hold){0};
}

/* ---- taking ---------------------------------------------------------------------------------- */

/* false: out of memory. */
static bool find_holders(struct allowances *all, const struct identity *who,
                         struct allowance_hold *hold)
{
    char key[KEY_SIZE];
    (void)snprintf(key, sizeof(key), "%s/%s", who->tenant, who->user);
    hold->user = holder_get(all, key);
    hold->tenant = holder_get(all, who->tenant);
    if (hold->user && hold->tenant)
        return true;
    hold_put(hold);
    return false;
}

static enum err_code refuse(const struct allowance_hold *hold, const char *whose, uint64_t held,
                            uint64_t limit, struct err *err)
{
    return err_set(
        err, ERR_RATE,
        "this %s would hold %llu %s at once, the limit is %llu (web.%s_per_%s): end some, "
        "or try again later",
        whose, (unsigned long long)held + hold->amount, kinds[hold->kind].what,
        (unsigned long long)limit, kinds[hold->kind].setting, whose);
}

/* The lock is held. */
static enum err_code check(const struct allowance_hold *hold, struct err *err)
{
    const struct limits *limits = &hold->all->limits[hold->kind];
    uint64_t of_user = hold->user->amount[hold->kind];
    uint64_t of_tenant = hold->tenant->amount[hold->kind];
    uint64_t of_all = hold->all->amount[hold->kind];
    if (of_user + hold->amount > limits->user)
        return refuse(hold, "user", of_user, limits->user, err);
    if (of_tenant + hold->amount > limits->tenant)
        return refuse(hold, "tenant", of_tenant, limits->tenant, err);
    if (of_all + hold->amount > limits->in_all)
        return err_set(
            err, ERR_OVERLOADED, "this process holds %llu %s, the limit is %llu: try again soon",
            (unsigned long long)of_all, kinds[hold->kind].what, (unsigned long long)limits->in_all);
    return ERR_OK;
}

static enum err_code take(struct allowance_hold *hold, const struct identity *who, bool always,
                          struct err *err)
{
    struct allowances *all = hold->all;
    pthread_mutex_lock(&all->lock);
    if (!find_holders(all, who, hold)) {
        pthread_mutex_unlock(&all->lock);
        return err_set(err, ERR_NOMEM, "out of memory");
    }
    enum err_code rc = always ? ERR_OK : check(hold, err);
    if (rc == ERR_OK) {
        hold->user->amount[hold->kind] += hold->amount;
        hold->tenant->amount[hold->kind] += hold->amount;
        all->amount[hold->kind] += hold->amount;
    } else {
        hold_put(hold);
    }
    pthread_mutex_unlock(&all->lock);
    return rc;
}

enum err_code allowance_take(struct allowances *all, enum allowance_kind kind,
                             const struct identity *who, uint64_t amount,
                             struct allowance_hold *ret_hold, struct err *err)
{
    struct allowance_hold hold = {.all = all, .kind = kind, .amount = amount};
    enum err_code rc = take(&hold, who, false, err);
    if (rc == ERR_RATE)
        web_count_limited(true);
    *ret_hold = hold;
    return rc;
}

void allowance_add(struct allowances *all, enum allowance_kind kind, const struct identity *who,
                   uint64_t amount, struct allowance_hold *ret_hold)
{
    struct err err = {0};
    struct allowance_hold hold = {.all = all, .kind = kind, .amount = amount};
    (void)!take(&hold, who, true, &err);
    *ret_hold = hold;
}

enum err_code allowance_check(struct allowances *all, enum allowance_kind kind,
                              const struct identity *who, uint64_t amount, struct err *err)
{
    ALLOWANCE_AUTO struct allowance_hold hold = {0};
    pthread_mutex_lock(&all->lock);
    bool is_sure = all->amount[kind] + amount <= all->limits[kind].user;
    pthread_mutex_unlock(&all->lock);
    return is_sure ? ERR_OK : allowance_take(all, kind, who, amount, &hold, err);
}

void allowance_return(struct allowance_hold *hold)
{
    struct allowances *all = hold->all;
    if (!all)
        return;
    pthread_mutex_lock(&all->lock);
    hold->user->amount[hold->kind] -= hold->amount;
    hold->tenant->amount[hold->kind] -= hold->amount;
    all->amount[hold->kind] -= hold->amount;
    hold_put(hold);
    pthread_mutex_unlock(&all->lock);
}
