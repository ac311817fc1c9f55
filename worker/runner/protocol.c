/* SPDX-License-Identifier: MIT */
#include "worker/runner/protocol.h"

#include "common/base/fs.h"
#include "common/base/spare.h"
#include "worker/runner/fields.h"

#include <errno.h>

#define FRAME_BYTES 4
#define WALL_MAX_MS ((uint64_t)10 * 366 * 24 * 3600 * 1000)
#define GRACE_MAX_MS ((uint64_t)24 * 3600 * 1000)
#define OUTPUT_MAX_BYTES ((uint64_t)1 << 50)

static const struct field limit_fields[] = {
    FIELD(FIELD_U64, struct runner_limits, wall_ms),
    FIELD(FIELD_U64, struct runner_limits, grace_ms),
    FIELD(FIELD_U64, struct runner_limits, memory_bytes),
    FIELD(FIELD_U64, struct runner_limits, cpu_s),
    FIELD(FIELD_U64, struct runner_limits, processes),
    FIELD(FIELD_U64, struct runner_limits, file_bytes),
    FIELD(FIELD_U64, struct runner_limits, open_files),
    FIELD_END,
};

static const struct field start_fields[] = {
    FIELD_OTHER("op"),
    FIELD_OTHER("id"),
    FIELD(FIELD_UUID, struct runner_start, job),
    FIELD(FIELD_U64, struct runner_start, fence),
    FIELD(FIELD_U64, struct runner_start, run),
    FIELD_OTHER("argv"),
    FIELD_OTHER("env"),
    FIELD_OTHER("working_dir"),
    FIELD_OTHER("output_root"),
    FIELD_OTHER("output_dir"),
    FIELD(FIELD_U64, struct runner_start, output_max_bytes),
    FIELD_TABLE_OF(struct runner_start, limits, limit_fields),
    FIELD_END,
};

int64_t protocol_boot_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

enum err_code protocol_pack(struct buf *out, const json_t *message, size_t limit, struct err *err)
{
    TEXT_AUTO char *text = message ? spare_text(json_dumps(message, JSON_COMPACT)) : NULL;
    if (!text)
        return err_set(err, ERR_NOMEM, "no memory for a message");
    size_t size = strlen(text);
    if (size > limit)
        return err_set(err, ERR_TOO_LARGE, "a message of %zu bytes; the limit is %zu", size, limit);
    const unsigned char frame[FRAME_BYTES] = {(unsigned char)(size >> 24),
                                              (unsigned char)(size >> 16),
                                              (unsigned char)(size >> 8), (unsigned char)size};
    if (out->failed || out->len + FRAME_BYTES + size > out->limit)
        return err_set(err, ERR_OVERLOADED, "the other side does not read");
    if (!buf_add(out, frame, FRAME_BYTES) || !buf_add(out, text, size))
        return err_set(err, ERR_NOMEM, "no memory for a message");
    return ERR_OK;
}

enum err_code protocol_unpack(struct buf *in, size_t limit, json_t **ret_message, struct err *err)
{
    *ret_message = NULL;
    if (in->len < FRAME_BYTES)
        return ERR_OK;
    const unsigned char *head = (const unsigned char *)in->ptr;
    size_t size = ((size_t)head[0] << 24) | ((size_t)head[1] << 16) | ((size_t)head[2] << 8) |
                  (size_t)head[3];
    if (size > limit)
        return err_set(err, ERR_PROTOCOL, "a message of %zu bytes; the limit is %zu", size, limit);
    if (in->len - FRAME_BYTES < size)
        return ERR_OK;
    json_t *message = json_loadb(in->ptr + FRAME_BYTES, size, JSON_REJECT_DUPLICATES, NULL);
    size_t used = FRAME_BYTES + size;
    memmove(in->ptr, in->ptr + used, in->len - used);
    in->len -= used;
    if (!json_is_object(message)) {
        json_decref(message);
        return err_set(err, ERR_PROTOCOL, "a message that is not a JSON object");
    }
    *ret_message = message;
    return ERR_OK;
}

json_t *protocol_list_json(const char *const *texts)
{
    json_t *list = json_array();
    for (size_t i = 0; list && texts && texts[i]; i++) {
        json_t *text = json_string(texts[i]);
        if (text && json_array_append_new(list, text) == 0)
            continue;
        json_decref(list);
        list = NULL;
    }
    return list;
}

enum err_code protocol_start_json(const struct runner_start *start, json_t **ret_message,
                                  struct err *err)
{
    char dir[RUNNER_DIR_SIZE];
    struct runner_start full = *start;
    if (full.run == 0)
        full.run = full.fence;
    (void)runner_job_dir(&full.job, full.run, dir);
    json_t *message = fields_json(start_fields, &full);
    json_t *rest = json_pack("{s:s, s:o, s:o, s:s, s:s, s:s}", "op", "start", "argv",
                             protocol_list_json(start->argv), "env", protocol_list_json(start->env),
                             "working_dir", start->working_dir ? start->working_dir : dir,
                             "output_root", start->output_root, "output_dir", start->output_dir);
    if (!message || !rest || json_object_update(message, rest) != 0) {
        json_decref(message);
        message = NULL;
    }
    json_decref(rest);
    if (!message)
        return err_set(err, ERR_INVALID, "the job's words are not UTF-8, or memory is short");
    *ret_message = message;
    return ERR_OK;
}

/* The texts of a JSON array, ended by NULL, to be freed; NULL if it is none or holds a NUL. */
static const char *const *list_parse(const json_t *list)
{
    size_t count = json_array_size(list);
    const char **texts = json_is_array(list) ? calloc(count + 1, sizeof(*texts)) : NULL;
    for (size_t i = 0; texts && i < count; i++) {
        const json_t *item = json_array_get(list, i);
        texts[i] = json_string_value(item);
        if (texts[i] && strlen(texts[i]) == json_string_length(item))
            continue;
        free(texts);
        texts = NULL;
    }
    return texts;
}

static bool paths_are_good(const struct runner_start *start)
{
    return start->working_dir && fs_path_is_safe(sv_of(start->working_dir)) && start->output_root &&
           start->output_root[0] == '/' && start->output_dir &&
           fs_path_is_safe(sv_of(start->output_dir));
}

enum err_code protocol_start_parse(const json_t *message, struct runner_start *ret_start,
                                   struct err *err)
{
    struct runner_start start = {0};
    enum err_code rc = fields_parse(start_fields, FIELDS_EXACT, message, &start, err);
    if (rc)
        return rc;
    errno = 0;
    start.argv = list_parse(json_object_get(message, "argv"));
    start.env = list_parse(json_object_get(message, "env"));
    start.working_dir = json_string_value(json_object_get(message, "working_dir"));
    start.output_root = json_string_value(json_object_get(message, "output_root"));
    start.output_dir = json_string_value(json_object_get(message, "output_dir"));
    bool lists = json_is_array(json_object_get(message, "argv")) &&
                 json_is_array(json_object_get(message, "env"));
    if (lists && errno == ENOMEM)
        rc = err_set(err, ERR_NOMEM, "no memory for the job's words");
    else if (!start.argv || !start.argv[0] || !start.env)
        rc = err_set(err, ERR_INVALID, "argv or env is missing, empty or not text");
    else if (!paths_are_good(&start))
        rc = err_set(err, ERR_INVALID, "working_dir, output_root or output_dir is not allowed");
    else if (start.output_max_bytes < RUNNER_OUTPUT_MIN || start.fence == 0 || start.run == 0)
        rc = err_set(err, ERR_INVALID, "fence and run are at least 1, output_max_bytes %d",
                     RUNNER_OUTPUT_MIN);
    else if (start.limits.wall_ms > WALL_MAX_MS || start.limits.grace_ms > GRACE_MAX_MS ||
             start.output_max_bytes > OUTPUT_MAX_BYTES)
        rc = err_set(err, ERR_INVALID, "wall_ms, grace_ms or output_max_bytes is out of range");
    if (rc) {
        protocol_start_clear(&start);
        return rc;
    }
    *ret_start = start;
    return ERR_OK;
}

static void list_free(const char *const **take_list)
{
    union { /* the array is ours, what it points to is not */
        const char *const *lent;
        void *owned;
    } list = {*take_list};
    free(list.owned);
    *take_list = NULL;
}

void protocol_start_clear(struct runner_start *start)
{
    list_free(&start->argv);
    list_free(&start->env);
}

json_t *protocol_error_json(json_int_t re, const struct err *error)
{
    return json_pack("{s:I, s:s, s:s}", "re", re, "error", err_name(error->code), "text",
                     error->text);
}

enum err_code protocol_answer_error(const json_t *answer, struct err *err)
{
    const char *name = json_string_value(json_object_get(answer, "error"));
    const char *text = json_string_value(json_object_get(answer, "text"));
    if (!name)
        return ERR_OK;
    for (int code = ERR_OK + 1; code < ERR_CODE_COUNT; code++) {
        if (strcmp(name, err_name((enum err_code)code)) == 0)
            return err_set(err, (enum err_code)code, "%s", text ? text : "no reason given");
    }
    return err_set(err, ERR_PROTOCOL, "an unknown error %s", name);
}
