/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_ENTITY_H
#define WEBAPP_ENTITY_H

/* entity: what the resources that are put and deleted share: names in the path, versions as entity
 * tags, conditions of a request. Threads: any handler thread. */

#include "common/store/store.h"
#include "webapp/request.h"

struct entity_rule {
    const char *what; /* "queue name" */
    size_t size;      /* of the name and its NUL */
    bool lower_only;  /* no capitals */
};
/* A part of the path as a name: letters, digits, '.', '_' and '-', beginning with a letter or
 * digit. ERR_INVALID with its limit. ret_name has the rule's size. */
MUST_USE enum err_code entity_name(const struct request *req, size_t param,
                                   const struct entity_rule *rule, char *ret_name, struct err *err);

/* What If-Match and If-None-Match ask for: a version, or EXPECT_.... ERR_INVALID: neither "*" nor
 * one tag that we could have given. */
MUST_USE enum err_code entity_expect(const struct request *req, uint32_t *ret_expect,
                                     struct err *err);
/* The same for DELETE, where If-None-Match makes no sense. */
MUST_USE enum err_code entity_expect_old(const struct request *req, uint32_t *ret_expect,
                                         struct err *err);
/* DELETE of what one name tells, and its answer. */
typedef enum err_code entity_delete_fn(struct store *store, const char *tenant, const char *name,
                                       uint32_t expect_version, struct err *err);
MUST_USE enum err_code entity_delete(struct request *req, entity_delete_fn *delete_row,
                                     const char *name, struct err *err);

void reply_tag(struct request *req, uint32_t version); /* ETag */
/* Location, as the path was sent. */
void reply_location(struct request *req);

#endif
