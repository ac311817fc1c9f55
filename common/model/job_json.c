/* SPDX-License-Identifier: MIT */
#include "common/model/job_request.h"

#include "common/model/limits.h"

void job_json_drop(json_t **value)
{
    json_decref(*value);
    *value = NULL;
}

struct json_size {
    size_t values; /* names of members count as well: they take as much memory */
    int depth;
};

/* The character after a string whose first quote is at text[i]. */
static size_t after_string(struct sv text, size_t i)
{
    for (i++; i < text.len && text.ptr[i] != '"'; i++)
        i += text.ptr[i] == '\\';
    return i + 1;
}

/* Counts without building anything. Of text that is not JSON the numbers mean nothing, but they are
 * never less than what a parser builds of it before it finds that out. */
static struct json_size measure(struct sv text)
{
    struct json_size size = {0};
    int nesting = 0;
    bool in_word = false; /* number, true, false, null */
    for (size_t i = 0; i < text.len;) {
        char c = text.ptr[i];
        bool opens = c == '{' || c == '[';
        bool is_word = c != '"' && !strchr(" \t\r\n,:{}[]", c); /* a NUL, too, is no word */
        bool begins = opens || c == '"' || (is_word && !in_word);
        nesting += opens;
        size.values += begins;
        if (begins && nesting + !opens > size.depth)
            size.depth = nesting + !opens;
        nesting -= c == '}' || c == ']';
        in_word = is_word;
        i = c == '"' ? after_string(text, i) : i + 1;
    }
    return size;
}

static enum err_code check_size(struct sv text, struct err *err)
{
    struct json_size size = measure(text);
    if (size.values > LIMIT_JSON_VALUES)
        return err_set(err, ERR_TOO_LARGE,
                       "the JSON has %zu values and names, the limit is %d; send less at once",
                       size.values, LIMIT_JSON_VALUES);
    if (size.depth > LIMIT_JSON_DEPTH)
        return err_set(err, ERR_MALFORMED,
                       "JSON is nested too deep: it has %d levels, the limit is %d", size.depth,
                       LIMIT_JSON_DEPTH);
    return ERR_OK;
}

enum err_code job_json_read(struct sv text, json_t **ret_value, struct err *err)
{
    json_error_t reason;
    enum err_code rc = check_size(text, err);
    if (rc)
        return rc;
    JSON_AUTO json_t *value =
        json_loadb(text.ptr ? text.ptr : "", text.len, JSON_REJECT_DUPLICATES, &reason);
    if (!value)
        return err_set(err, ERR_MALFORMED, "not JSON: %.200s (line %d, column %d)", reason.text,
                       reason.line, reason.column);
    *ret_value = TAKE(value);
    return ERR_OK;
}
