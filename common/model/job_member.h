/* SPDX-License-Identifier: MIT */
#ifndef COMMON_MODEL_JOB_MEMBER_H
#define COMMON_MODEL_JOB_MEMBER_H

/* job_member: one member of a JSON object with the pointer to it, read by type and limit.
 * Threads: any. Memory: text is borrowed from the value; a list's array is the caller's. */

#include "common/model/job_request.h"

struct member {
    json_t *value;
    char pointer[ERR_POINTER_MAX];
};

/* object's pointer + "/" + name, escaped as RFC 6901 says. */
struct member member_of(const char *object_pointer, const char *name, json_t *value);
struct member member_item(const struct member *array, size_t index);

MUST_USE enum err_code member_text(const struct member *member, size_t max_bytes,
                                   const char **ret_text, struct err *err);
/* A copy of a text that fits size with its NUL. */
MUST_USE enum err_code member_copy(const struct member *member, char *ret_text, size_t size,
                                   struct err *err);
MUST_USE enum err_code member_u32(const struct member *member, uint32_t least, uint32_t most,
                                  uint32_t *ret_value, struct err *err);
MUST_USE enum err_code member_list(const struct member *member, size_t max_count, size_t max_bytes,
                                   struct text_list *ret_list, struct err *err);
MUST_USE enum err_code member_object(const struct member *member, struct err *err);
MUST_USE enum err_code member_array(const struct member *member, size_t max_count, struct err *err);

/* The names that an object's members may have. */
struct member_names {
    const char *what; /* "a job request" */
    const char *const *names;
    size_t count;
};
/* ERR_UNKNOWN_MEMBER with the name that was most likely meant, or those that there are. */
MUST_USE enum err_code member_unknown(const struct member *member, const char *name,
                                      const struct member_names *known, struct err *err);

/* Globs relative to the job directory: one that would leave it could match nothing. */
MUST_USE enum err_code member_patterns(const struct member *member, struct text_list *ret_list,
                                       struct err *err);
/* The env of a request. */
MUST_USE enum err_code member_env(struct job_request *request, const struct member *member,
                                  struct err *err);
/* The fileInputs of a request. */
MUST_USE enum err_code member_inputs(struct job_request *request, const struct member *member,
                                     struct err *err);
/* The url and states of a subscription: of a request, or of a tenant. */
MUST_USE enum err_code member_hook_url(const struct member *member, const char **ret_url,
                                       struct err *err);
MUST_USE enum err_code member_hook_states(const struct member *member, unsigned *ret_states,
                                          struct err *err);
/* The subscriptions of a request. */
MUST_USE enum err_code member_hooks(struct job_request *request, const struct member *member,
                                    struct err *err);

#endif
