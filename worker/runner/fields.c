/* SPDX-License-Identifier: MIT */
#include "worker/runner/fields.h"

#include "common/base/uuid.h"

#include <limits.h>

static json_t *value_json(const struct field *field, const void *at)
{
    char text[UUID_TEXT_SIZE];
    switch (field->type) {
    case FIELD_BOOL:
        return json_boolean(*(const bool *)at);
    case FIELD_INT:
        return json_integer(*(const int *)at);
    case FIELD_I64:
        return json_integer(*(const int64_t *)at);
    case FIELD_U64:
        return json_integer((json_int_t)(*(const uint64_t *)at & INT64_MAX));
    case FIELD_UUID:
        return json_string(uuid_text(at, text));
    case FIELD_TEXT:
        return json_string(at);
    case FIELD_TABLE:
        return fields_json(field->table, at);
    case FIELD_SKIP:
        break;
    }
    return NULL;
}

json_t *fields_json(const struct field *table, const void *from)
{
    json_t *json = json_object();
    for (const struct field *field = table; json && field->name; field++) {
        if (field->type == FIELD_SKIP)
            continue;
        json_t *value = value_json(field, (const char *)from + field->offset);
        if (!value || json_object_set_new(json, field->name, value) != 0) {
            json_decref(json);
            json = NULL;
        }
    }
    return json;
}

static bool parse_integer(const json_t *value, json_int_t least, json_int_t most, json_int_t *ret)
{
    if (!json_is_integer(value))
        return false;
    *ret = json_integer_value(value);
    return *ret >= least && *ret <= most;
}

static bool parse_value(const struct field *field, const json_t *value, void *at)
{
    json_int_t number = 0;
    struct sv text = {json_string_value(value), json_string_length(value)};
    switch (field->type) {
    case FIELD_BOOL:
        *(bool *)at = json_is_true(value);
        return json_is_boolean(value);
    case FIELD_INT:
        if (!parse_integer(value, INT_MIN, INT_MAX, &number))
            return false;
        *(int *)at = (int)number;
        return true;
    case FIELD_I64:
        if (!parse_integer(value, INT64_MIN, INT64_MAX, &number))
            return false;
        *(int64_t *)at = number;
        return true;
    case FIELD_U64:
        if (!parse_integer(value, 0, INT64_MAX, &number))
            return false;
        *(uint64_t *)at = (uint64_t)number;
        return true;
    case FIELD_UUID:
        return text.ptr && uuid_parse(text, at);
    case FIELD_TEXT:
        return text.ptr && sv_copy(text, at, field->size);
    case FIELD_TABLE:
    case FIELD_SKIP:
        break;
    }
    return true;
}

static enum err_code parse_field(const struct field *field, enum fields_mode mode,
                                 const json_t *value, void *at, struct err *err)
{
    if (field->type == FIELD_SKIP || (!value && mode == FIELDS_ANY_VERSION))
        return ERR_OK;
    if (!value || !parse_value(field, value, at))
        return err_set(err, ERR_PROTOCOL, "member %s is missing or wrong", field->name);
    if (field->type == FIELD_TABLE)
        return fields_parse(field->table, mode, value, at, err);
    return ERR_OK;
}

enum err_code fields_parse(const struct field *table, enum fields_mode mode, const json_t *json,
                           void *ret, struct err *err)
{
    size_t known = 0;
    if (!json_is_object(json))
        return err_set(err, ERR_PROTOCOL, "not an object");
    for (const struct field *field = table; field->name; field++) {
        const json_t *value = json_object_get(json, field->name);
        known += value != NULL;
        enum err_code rc = parse_field(field, mode, value, (char *)ret + field->offset, err);
        if (rc)
            return rc;
    }
    if (mode == FIELDS_EXACT && json_object_size(json) != known)
        return err_set(err, ERR_PROTOCOL, "an unknown member beside %zu known ones", known);
    return ERR_OK;
}
