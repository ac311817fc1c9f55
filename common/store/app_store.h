/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_APP_STORE_H
#define COMMON_STORE_APP_STORE_H

/* app_store: application definitions that a request may refer to. */

#include "common/model/job.h"
#include "common/store/store.h"

struct app {
    char tenant[TENANT_SIZE];
    char id[APP_ID_SIZE];
    char app_version[APP_VERSION_SIZE];
    bool enabled;
    char *definition; /* JSON object: the defaults of a request */
    uint32_t version; /* for If-Match */
    int64_t created_us;
    int64_t updated_us;
};

struct app_page { /* behind this version of this application; "" of both: from the first on */
    const char *id;
    const char *app_version;
    uint32_t limit;
};
struct app_list {
    struct app *items;
    size_t count;
};

void app_done(struct app *app);
void app_list_done(struct app_list *list);
MUST_USE enum err_code app_store_list(struct store *store, const char *tenant,
                                      const struct app_page *page, struct app_list *ret_list,
                                      struct err *err);
MUST_USE enum err_code app_store_get(struct store *store, const char *tenant, const char *id,
                                     const char *app_version, struct app *ret_app, struct err *err);
/* Writes the definition; a new one is enabled. expect_version as in queue_store_put. */
MUST_USE enum err_code app_store_put(struct store *store, const struct app *app,
                                     uint32_t expect_version, uint32_t *ret_version, bool *ret_made,
                                     struct err *err);
MUST_USE enum err_code app_store_delete(struct store *store, const char *tenant, const char *id,
                                        const char *app_version, uint32_t expect_version,
                                        struct err *err);
MUST_USE enum err_code app_store_enable(struct store *store, const char *tenant, const char *id,
                                        const char *app_version, bool enabled, struct err *err);

#endif
