/* SPDX-License-Identifier: MIT */
#include "common/model/job_member.h"

#include "common/base/fs.h"
#include "common/base/nearest.h"
#include "common/model/limits.h"

static const char *type_name(const json_t *value)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array", [JSON_STRING] = "a string",
        [JSON_INTEGER] = "a number", [JSON_REAL] = "a number",  [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",      [JSON_NULL] = "null",
    };
    return names[json_typeof(value)];
}

struct member member_of(const char *object_pointer, const char *name, json_t *value)
{
    struct member member = {.value = value};
    size_t at = (size_t)snprintf(member.pointer, sizeof(member.pointer), "%s/", object_pointer);
    for (; *name && at + 3 < sizeof(member.pointer); name++) {
        if (*name == '~' || *name == '/') {
            member.pointer[at++] = '~';
            member.pointer[at++] = *name == '~' ? '0' : '1';
        } else {
            member.pointer[at++] = *name;
        }
    }
    if (at < sizeof(member.pointer))
        member.pointer[at] = 0;
    return member;
}

struct member member_item(const struct member *array, size_t index)
{
    char name[24];
    (void)snprintf(name, sizeof(name), "%zu", index);
    return member_of(array->pointer, name, json_array_get(array->value, index));
}

/* Of a request, also of one in a batch. */
static bool is_argument(const char *pointer)
{
    return strstr(pointer, "/command/") || strstr(pointer, "/args/");
}

enum err_code member_text(const struct member *member, size_t max_bytes, const char **ret_text,
                          struct err *err)
{
    if (!json_is_string(member->value))
        return err_set_at(err, ERR_INVALID, member->pointer, "a string is wanted here, not %s",
                          type_name(member->value));
    size_t length = json_string_length(member->value);
    if (length > max_bytes)
        return err_set_at(err, ERR_INVALID, member->pointer,
                          "%zu bytes are too many, the limit is %zu%s", length, max_bytes,
                          is_argument(member->pointer)
                              ? ": send a long text as an input file (fileInputs, content)"
                              : "");
    *ret_text = json_string_value(member->value);
    return ERR_OK;
}

enum err_code member_copy(const struct member *member, char *ret_text, size_t size, struct err *err)
{
    const char *text = NULL;
    enum err_code rc = member_text(member, size - 1, &text, err);
    if (rc == ERR_OK)
        (void)snprintf(ret_text, size, "%s", text);
    return rc;
}

enum err_code member_u32(const struct member *member, uint32_t least, uint32_t most,
                         uint32_t *ret_value, struct err *err)
{
    if (!json_is_integer(member->value))
        return err_set_at(err, ERR_INVALID, member->pointer,
                          "a whole number from %u to %u is wanted here, not %s", least, most,
                          json_is_real(member->value) ? "a fraction" : type_name(member->value));
    json_int_t value = json_integer_value(member->value);
    if (value < (json_int_t)least || value > (json_int_t)most)
        return err_set_at(err, ERR_INVALID, member->pointer,
                          "%lld is not allowed, a whole number from %u to %u is", (long long)value,
                          least, most);
    *ret_value = (uint32_t)value;
    return ERR_OK;
}

enum err_code member_array(const struct member *member, size_t max_count, struct err *err)
{
    if (!json_is_array(member->value))
        return err_set_at(err, ERR_INVALID, member->pointer, "an array is wanted here, not %s",
                          type_name(member->value));
    size_t count = json_array_size(member->value);
    if (count > max_count)
        return err_set_at(err, ERR_INVALID, member->pointer,
                          "%zu items are too many, the limit is %zu", count, max_count);
    return ERR_OK;
}

enum err_code member_object(const struct member *member, struct err *err)
{
    if (json_is_object(member->value))
        return ERR_OK;
    return err_set_at(err, ERR_INVALID, member->pointer, "an object is wanted here, not %s",
                      type_name(member->value));
}

enum err_code member_list(const struct member *member, size_t max_count, size_t max_bytes,
                          struct text_list *ret_list, struct err *err)
{
    enum err_code rc = member_array(member, max_count, err);
    if (rc)
        return rc;
    size_t count = json_array_size(member->value);
    const char **items = calloc(count ? count : 1, sizeof(*items));
    if (!items)
        return err_set(err, ERR_NOMEM, "no memory for a list of %zu items", count);
    for (size_t i = 0; i < count && (rc == ERR_OK || err_wants_more(err)); i++) {
        struct member item = member_item(member, i);
        enum err_code one = member_text(&item, max_bytes, &items[i], err);
        rc = rc ? rc : one;
    }
    if (rc) {
        free(items);
        return rc;
    }
    *ret_list = (struct text_list){items, count};
    return ERR_OK;
}

enum err_code member_patterns(const struct member *member, struct text_list *ret_list,
                              struct err *err)
{
    enum err_code rc = member_list(member, LIMIT_PATTERN_COUNT, LIMIT_PATTERN_BYTES, ret_list, err);
    for (size_t i = 0; i < ret_list->count && (rc == ERR_OK || err_wants_more(err)); i++) {
        struct member item = member_item(member, i);
        if (!fs_path_is_safe(sv_of(ret_list->items[i])))
            rc = err_set_at(err, ERR_INVALID, item.pointer,
                            "a relative pattern without empty, '.' and '..' parts is wanted here");
    }
    return rc;
}

enum err_code member_unknown(const struct member *member, const char *name,
                             const struct member_names *known, struct err *err)
{
    struct nearest nearest = {.name = sv_of(name)};
    char list[ERR_TEXT_MAX / 2] = "";
    for (size_t i = 0; i < known->count; i++) {
        nearest_try(&nearest, known->names[i]);
        nearest_add_known(list, sizeof(list), known->names[i]);
    }
    if (nearest.best)
        return err_set_at(err, ERR_UNKNOWN_MEMBER, member->pointer,
                          "'%.64s' is not a member of %s; did you mean '%s'?", name, known->what,
                          nearest.best);
    return err_set_at(err, ERR_UNKNOWN_MEMBER, member->pointer,
                      "'%.64s' is not a member of %s; it has %s", name, known->what, list);
}
