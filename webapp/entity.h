/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_ENTITY_H
#define WEBAPP_ENTITY_H

/* entity: what the resources that are put and deleted share: names in the path, versions as entity
 * tags, conditions of a request. Threads: any handler thread. */

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

/* What If-Match and If-None-Match ask for, as queue_store_put and the like take it. */
struct entity_condition {
    uint32_t expect_version; /* 0: any; UINT32_MAX: it must be new */
    bool must_exist;         /* If-Match: * */
};
/* ERR_INVALID: neither "*" nor one tag that we could have given. */
MUST_USE enum err_code entity_condition(const struct request *req,
                                        struct entity_condition *ret_condition, struct err *err);
/* As above for DELETE, where If-None-Match makes no sense. */
MUST_USE enum err_code entity_condition_of_delete(const struct request *req,
                                                  struct entity_condition *ret_condition,
                                                  struct err *err);
void reply_tag(struct request *req, uint32_t version); /* ETag */

#endif
