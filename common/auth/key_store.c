/* SPDX-License-Identifier: MIT */
#include "common/auth/key_store.h"

#include "common/base/clock.h"
#include "common/base/log.h"

#include <pthread.h>

#define COST_FACTOR                                                                                \
    20 /* for a key that is not known, looking takes a twentieth of the time at most */

struct key_store {
    struct auth_config cfg;
    pthread_mutex_t mutex; /* guards what follows; not held while folders are read */
    pthread_cond_t scanned;
    bool scanning;
    bool failed; /* the last look did; told once */
    int64_t looked_ms;
    int64_t cost_ms;    /* that the last look took */
    struct key_set set; /* replaced only by the thread that scans */
};

void tenant_keys_free(struct tenant_keys *tenant)
{
    if (atomic_fetch_sub(&tenant->refs, 1) != 1)
        return;
    for (size_t i = 0; i < tenant->count; i++)
        auth_key_clear(&tenant->keys[i]);
    free(tenant);
}

void key_set_done(struct key_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        tenant_keys_free(set->tenants[i]);
    free(set->tenants);
    *set = (struct key_set){0};
}

bool auth_tenant_is_valid(struct sv name)
{
    if (name.len == 0 || name.len >= AUTH_TENANT_SIZE || name.ptr[0] == '-')
        return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-')
            return false;
    }
    return true;
}

enum err_code key_store_open(const struct auth_config *cfg, struct key_store **ret_store,
                             struct err *err)
{
    struct key_store *store = calloc(1, sizeof(*store));
    struct key_set none = {0};
    struct err fault = {0};
    if (!store)
        return err_set(err, ERR_NOMEM, "out of memory for the keys");
    store->cfg = *cfg;
    store->looked_ms = clock_mono_ms();
    enum err_code rc = key_scan(cfg, &none, &store->set, &fault);
    if (rc) {
        free(store);
        return err_set(err, ERR_CONFIG, "auth.keys_dir: %s", fault.text);
    }
    pthread_mutex_init(&store->mutex, NULL);
    clock_cond_init(&store->scanned);
    *ret_store = store;
    return ERR_OK;
}

void key_store_close(struct key_store *store)
{
    if (!store)
        return;
    key_set_done(&store->set);
    pthread_cond_destroy(&store->scanned);
    pthread_mutex_destroy(&store->mutex);
    free(store);
}

/* True if the caller shall look now. */
static bool begin_scan(struct key_store *store, unsigned age_ms, bool wait)
{
    int64_t asked_ms = clock_mono_ms();
    bool mine = false;
    pthread_mutex_lock(&store->mutex);
    while (wait && store->scanning)
        pthread_cond_wait(&store->scanned, &store->mutex);
    int64_t least_ms = COST_FACTOR * store->cost_ms;
    if (least_ms > store->cfg.rescan_ms) /* a key that was removed is worth more than the time */
        least_ms = store->cfg.rescan_ms;
    if (least_ms < age_ms)
        least_ms = age_ms;
    if (!store->scanning && asked_ms - store->looked_ms >= least_ms) {
        store->scanning = mine = true;
        store->looked_ms = asked_ms;
    }
    pthread_mutex_unlock(&store->mutex);
    return mine;
}

void key_store_refresh(struct key_store *store, unsigned age_ms, bool wait)
{
    struct key_set set = {0};
    struct err err = {0};
    if (!begin_scan(store, age_ms, wait))
        return;
    int64_t started_ms = clock_mono_ms();
    enum err_code rc = key_scan(&store->cfg, &store->set, &set, &err);
    if (rc == ERR_NOT_FOUND) /* no folder, no tenants */
        rc = ERR_OK;
    if (rc) /* any other fault keeps the keys that are seen to be there */
        key_scan_drop(&store->cfg, &store->set);
    if (err.code && !store->failed)
        log_err("auth.keys.failed", &err);
    if (set.refused > 0 && set.refused != store->set.refused)
        log_event(LOG_WARN, "auth.folders.refused", LOG_U("folders", set.refused),
                  LOG_U("tenants", set.count));
    pthread_mutex_lock(&store->mutex);
    struct key_set old = {0};
    if (!rc) {
        old = store->set;
        store->set = set;
    }
    store->cost_ms = clock_mono_ms() - started_ms;
    store->failed = err.code != ERR_OK;
    store->scanning = false;
    pthread_cond_broadcast(&store->scanned);
    pthread_mutex_unlock(&store->mutex);
    key_set_done(&old);
}

static int compare(struct sv name, const char *tenant)
{
    size_t length = strlen(tenant);
    int order = memcmp(name.ptr, tenant, name.len < length ? name.len : length);
    return order ? order : (name.len > length) - (name.len < length);
}

struct tenant_keys *key_set_find(const struct key_set *set, struct sv tenant)
{
    size_t low = 0;
    size_t high = set->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare(tenant, set->tenants[middle]->tenant);
        if (order == 0)
            return set->tenants[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

struct tenant_keys *key_store_find(struct key_store *store, struct sv tenant)
{
    pthread_mutex_lock(&store->mutex);
    struct tenant_keys *found = key_set_find(&store->set, tenant);
    if (found)
        atomic_fetch_add(&found->refs, 1);
    pthread_mutex_unlock(&store->mutex);
    return found;
}

size_t key_store_count(struct key_store *store)
{
    pthread_mutex_lock(&store->mutex);
    size_t count = store->set.count;
    pthread_mutex_unlock(&store->mutex);
    return count;
}

bool key_store_name(struct key_store *store, size_t index, char *ret_name)
{
    pthread_mutex_lock(&store->mutex);
    bool found = index < store->set.count;
    if (found)
        memcpy(ret_name, store->set.tenants[index]->tenant, AUTH_TENANT_SIZE);
    pthread_mutex_unlock(&store->mutex);
    return found;
}

struct auth_trouble key_store_trouble(struct key_store *store)
{
    pthread_mutex_lock(&store->mutex);
    struct auth_trouble trouble = {.all = store->failed, .folders = store->set.refused};
    pthread_mutex_unlock(&store->mutex);
    return trouble;
}
