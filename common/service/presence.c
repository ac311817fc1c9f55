/* SPDX-License-Identifier: MIT */
#include "common/service/presence.h"

#include "common/base/clock.h"
#include "common/store/migrate.h"
#include "common/store/process_store.h"

#include <pthread.h>
#include <unistd.h>

#define FIRST_MS 500 /* until the database is there, and its schema is ours */

struct presence {
    struct store *store;
    struct process_row row;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stopping; /* lock */
    pthread_t thread;
};

/* true: the end was asked for. */
static bool wait_for_end(struct presence *presence, int64_t ms)
{
    int64_t until_ms = clock_mono_ms() + ms;
    pthread_mutex_lock(&presence->lock);
    while (!presence->stopping && clock_cond_wait_until(&presence->wake, &presence->lock, until_ms))
        continue;
    bool stopping = presence->stopping;
    pthread_mutex_unlock(&presence->lock);
    return stopping;
}

static void *presence_main(void *arg)
{
    struct presence *presence = arg;
    bool told = false;
    do {
        struct err err = {0};
        told = store_ping(presence->store, &err) == ERR_OK &&
               process_store_seen(presence->store, &presence->row, &err) == ERR_OK;
    } while (!wait_for_end(presence, told ? PRESENCE_EVERY_MS : FIRST_MS));
    struct err err = {0};
    if (told && process_store_gone(presence->store, &presence->row.id, &err) != ERR_OK)
        told = false; /* the row grows old by itself */
    store_thread_end();
    return NULL;
}

enum err_code presence_start(struct store *store, const char *service,
                             struct presence **ret_presence, struct err *err)
{
    struct presence *presence = calloc(1, sizeof(*presence));
    if (!presence)
        return err_set(err, ERR_NOMEM, "no memory for the presence");
    presence->store = store;
    presence->row = (struct process_row){
        .id = uuid_v7(), .pid = (uint32_t)getpid(), .schema = migrate_newest()};
    (void)snprintf(presence->row.service, sizeof(presence->row.service), "%s", service);
    (void)snprintf(presence->row.version, sizeof(presence->row.version), "%s", SLUICE_VERSION);
    if (gethostname(presence->row.host, sizeof(presence->row.host) - 1) != 0)
        (void)snprintf(presence->row.host, sizeof(presence->row.host), "unknown");
    pthread_mutex_init(&presence->lock, NULL);
    clock_cond_init(&presence->wake);
    int failed = pthread_create(&presence->thread, NULL, presence_main, presence);
    if (failed) {
        free(presence);
        return err_set_errno(err, ERR_NOMEM, failed, "cannot start the presence");
    }
    *ret_presence = presence;
    return ERR_OK;
}

void presence_stop(struct presence *presence)
{
    if (!presence)
        return;
    pthread_mutex_lock(&presence->lock);
    presence->stopping = true;
    pthread_cond_broadcast(&presence->wake);
    pthread_mutex_unlock(&presence->lock);
    (void)pthread_join(presence->thread, NULL);
    pthread_cond_destroy(&presence->wake);
    pthread_mutex_destroy(&presence->lock);
    free(presence);
}
