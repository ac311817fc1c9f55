/* SPDX-License-Identifier: MIT */
#include "common/model/ended.h"

#include "common/model/message.h"

#include <assert.h>
#include <jansson.h>

size_t ended_write(const struct uuid *jobs, size_t count, char *ret_text)
{
    char id[UUID_TEXT_SIZE];
    assert(count <= ENDED_JOBS_MAX);
    int length = snprintf(ret_text, ENDED_SIZE_MAX, "{\"v\":%d,\"jobs\":[", MESSAGE_VERSION);
    for (size_t i = 0; i < count; i++)
        length += snprintf(ret_text + length, ENDED_SIZE_MAX - (size_t)length, "%s\"%s\"",
                           i ? "," : "", uuid_text(&jobs[i], id));
    length += snprintf(ret_text + length, ENDED_SIZE_MAX - (size_t)length, "]}");
    return (size_t)length;
}

static enum err_code read_jobs(const json_t *root, struct uuid *ret_jobs, size_t *ret_count,
                               struct err *err)
{
    const json_t *version = json_object_get(root, "v");
    const json_t *jobs = json_object_get(root, "jobs");
    size_t count = json_array_size(jobs);
    if (!json_is_integer(version) || json_integer_value(version) != MESSAGE_VERSION)
        return err_set_at(err, ERR_MALFORMED, "/v", "message version is not %d", MESSAGE_VERSION);
    if (!json_is_array(jobs) || count > ENDED_JOBS_MAX)
        return err_set_at(err, ERR_MALFORMED, "/jobs", "no list of at most %d jobs",
                          ENDED_JOBS_MAX);
    for (size_t i = 0; i < count; i++) {
        const json_t *job = json_array_get(jobs, i);
        if (!json_is_string(job) ||
            !uuid_parse((struct sv){json_string_value(job), json_string_length(job)}, &ret_jobs[i]))
            return err_set_at(err, ERR_MALFORMED, "/jobs", "item %zu names no job", i);
    }
    *ret_count = count;
    return ERR_OK;
}

enum err_code ended_read(struct sv body, struct uuid *ret_jobs, size_t *ret_count, struct err *err)
{
    json_error_t why;
    if (body.len > ENDED_SIZE_MAX)
        return err_set(err, ERR_TOO_LARGE, "message of %zu bytes, the limit is %d", body.len,
                       (int)ENDED_SIZE_MAX);
    json_t *root = json_loadb(body.ptr ? body.ptr : "", body.len, JSON_REJECT_DUPLICATES, &why);
    if (!root)
        return err_set(err, ERR_MALFORMED, "message is not JSON: %s", why.text);
    enum err_code rc = read_jobs(root, ret_jobs, ret_count, err);
    json_decref(root);
    return rc;
}
