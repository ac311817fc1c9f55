/* SPDX-License-Identifier: MIT */
#include "common/model/message.h"

#include <jansson.h>

size_t message_write(const struct message *message, char *ret_text)
{
    char id[UUID_TEXT_SIZE];
    int length = snprintf(ret_text, MESSAGE_SIZE_MAX, "{\"v\":%d,\"job\":\"%s\",\"epoch\":%u}",
                          MESSAGE_VERSION, uuid_text(&message->job, id), message->epoch);
    return (size_t)length;
}

static enum err_code read_members(const json_t *root, struct message *ret_message, struct err *err)
{
    const json_t *version = json_object_get(root, "v");
    const json_t *job = json_object_get(root, "job");
    const json_t *epoch = json_object_get(root, "epoch");
    if (!json_is_integer(version) || json_integer_value(version) != MESSAGE_VERSION)
        return err_set_at(err, ERR_MALFORMED, "/v", "message version is not %d", MESSAGE_VERSION);
    if (!json_is_string(job) ||
        !uuid_parse((struct sv){json_string_value(job), json_string_length(job)},
                    &ret_message->job))
        return err_set_at(err, ERR_MALFORMED, "/job", "message names no job");
    json_int_t number = json_is_integer(epoch) ? json_integer_value(epoch) : 0;
    if (number < 1 || number > UINT32_MAX)
        return err_set_at(err, ERR_MALFORMED, "/epoch",
                          "message has no epoch from 1 to 4294967295");
    ret_message->epoch = (uint32_t)number;
    return ERR_OK;
}

enum err_code message_read(struct sv body, struct message *ret_message, struct err *err)
{
    if (body.len > MESSAGE_SIZE_MAX)
        return err_set(err, ERR_TOO_LARGE, "message of %zu bytes, the limit is %d", body.len,
                       MESSAGE_SIZE_MAX);
    json_error_t json_err;
    json_t *root =
        json_loadb(body.ptr ? body.ptr : "", body.len, JSON_REJECT_DUPLICATES, &json_err);
    if (!root)
        return err_set(err, ERR_MALFORMED, "message is not JSON: %s", json_err.text);
    struct message message = {0};
    enum err_code rc = read_members(root, &message, err);
    json_decref(root);
    if (rc == ERR_OK)
        *ret_message = message;
    return rc;
}
