/* SPDX-License-Identifier: MIT */
#ifndef COMMON_MODEL_JOB_REQUEST_H
#define COMMON_MODEL_JOB_REQUEST_H

/* job_request: what a portal asks for, read strictly: an unknown member, a wrong type or a value
 * past its limit is refused with its JSON pointer (struct err, pointer).
 * Threads: owner. Memory: one object; all text in it lives until job_request_free(). */

#include "common/base/buf.h"
#include "common/base/err.h"

#include <jansson.h>

enum archive_mode { ARCHIVE_NEVER, ARCHIVE_ON_SUCCESS, ARCHIVE_ALWAYS };

struct job_input {
    const char *source_url; /* NULL: content holds the bytes */
    struct sv content;
    const char *target_path; /* relative to the job directory, safe (fs_path_is_safe) */
    unsigned mode;           /* permission bits; 0644 unless told */
};

struct job_env {
    const char *name;
    const char *value;
};

/* Who is told of the job by a webhook. */
struct job_hook {
    const char *url;    /* hook_url_read() takes it */
    unsigned states;    /* hook_states_text() */
    const char *secret; /* name of the subscription whose secret signs; NULL: not signed */
};

struct text_list {
    const char **items;
    size_t count;
};

struct job_request {
    json_t *root; /* owns the text */
    const char *name;
    struct text_list command; /* empty if an application gives it */
    struct text_list args;    /* appended to the command */
    const char *app_id;       /* NULL for a plain command */
    const char *app_version;
    const char *system_id; /* NULL: none */
    struct job_env *env;
    size_t env_count;
    struct job_input *inputs;
    size_t input_count;
    struct job_hook *hooks;
    size_t hook_count;
    uint32_t node_count;     /* 1 unless told */
    uint32_t cores_per_node; /* 1 unless told */
    uint32_t memory_mb;      /* 0: no limit */
    uint32_t max_seconds;    /* never 0 in a merged request */
    bool has_max_seconds;
    enum archive_mode archive; /* ARCHIVE_ALWAYS unless told, of what includes names */
    struct text_list includes; /* globs relative to the job directory; empty: nothing */
    struct text_list excludes;
    struct text_list tags;
    const char *notes;           /* NULL: none */
    const char *idempotency_key; /* NULL: none */
};

/* From text of a client. ERR_MALFORMED: not JSON (with line, column); else as described above. */
MUST_USE enum err_code job_request_parse(struct sv text, struct job_request **ret_request,
                                         struct err *err);
/* From a value that was parsed already (an item of a batch); takes a reference of its own.
 * prefix is put before every pointer ("/jobs/3"); NULL for none. */
MUST_USE enum err_code job_request_from_json(json_t *value, const char *prefix,
                                             struct job_request **ret_request, struct err *err);
/* What an application definition is: a request without name, appId, appVersion, idempotencyKey. */
MUST_USE enum err_code job_request_check_app(struct sv definition, struct err *err);
/* The request with the application's definition beneath it: members of the request win, env is
 * merged by name, tags and inputs are joined, args are appended. */
MUST_USE enum err_code job_request_merge(const struct job_request *request, struct sv definition,
                                         struct job_request **ret_merged, struct err *err);
/* Makes it one that can be run: it has a command, and a limit of time that is the site's default if
 * it names none and at most most_seconds. */
MUST_USE enum err_code job_request_complete(struct job_request *request, uint32_t default_seconds,
                                            uint32_t most_seconds, struct err *err);
/* Canonical text: members sorted, no blanks; equal requests have equal text. Free it; NULL when out
 * of memory. The idempotency key is left out. */
char *job_request_text(const struct job_request *request);
char *job_request_tags(const struct job_request *request); /* JSON array, as above */
void job_request_free(struct job_request *request);
DEFINE_AUTO(struct job_request *, job_request_free)

/* Text as JSON: duplicate members and NUL are refused, and, before anything is built of it, depth
 * over LIMIT_JSON_DEPTH and more values than LIMIT_JSON_VALUES. ERR_MALFORMED, ERR_TOO_LARGE. The
 * caller drops the reference. */
MUST_USE enum err_code job_json_read(struct sv text, json_t **ret_value, struct err *err);
#define JSON_AUTO __attribute__((cleanup(job_json_drop)))
void job_json_drop(json_t **value);

#endif
