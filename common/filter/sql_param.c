/* SPDX-License-Identifier: MIT */
#include "common/filter/sql_param.h"

#include "common/base/clock.h"
#include "common/filter/like.h"

#define FIRST_CAPACITY 16
#define TIME_SIZE 48
#define TIME_SECONDS_LENGTH 19 /* 2026-01-31T12:00:00 */
#define TIME_T_AT 10

void filter_params_done(struct filter_params *params)
{
    for (size_t i = 0; i < params->count; i++)
        free(params->items[i].text);
    free(params->items);
    *params = (struct filter_params){0};
}

enum err_code filter_params_add(struct filter_params *params, struct filter_param param,
                                struct err *err)
{
    if (params->count == params->capacity) {
        size_t capacity = params->capacity ? params->capacity * 2 : FIRST_CAPACITY;
        struct filter_param *items = realloc(params->items, capacity * sizeof(*items));
        if (!items) {
            free(param.text);
            return err_set(err, ERR_NOMEM, "no memory for the parameters of a filter");
        }
        params->items = items;
        params->capacity = capacity;
    }
    params->items[params->count++] = param;
    return ERR_OK;
}

char *filter_param_copy(struct sv text, size_t *ret_length)
{
    char *copy = malloc(text.len + 1);
    if (!copy)
        return NULL;
    if (text.len > 0)
        memcpy(copy, text.ptr, text.len);
    copy[text.len] = 0;
    *ret_length = text.len;
    return copy;
}

char *filter_param_time(int64_t us, size_t *ret_length)
{
    char seconds[CLOCK_TEXT_SIZE];
    char whole[TIME_SIZE];
    clock_rfc3339(us, seconds);
    seconds[TIME_T_AT] = ' ';
    (void)snprintf(whole, sizeof(whole), "%.*s.%06d", TIME_SECONDS_LENGTH, seconds,
                   (int)(us % 1000000));
    return filter_param_copy(sv_of(whole), ret_length);
}

char *filter_param_path(const char *env_path, struct sv name, size_t *ret_length)
{
    BUF_AUTO struct buf path = BUF_INIT(FILTER_TEXT_MAX + 256);
    buf_addf(&path, "%s.\"%.*s\"", env_path, SV_ARG(name));
    return path.failed ? NULL : filter_param_copy(buf_sv(&path), ret_length);
}

char *filter_param_pattern(struct sv pattern, size_t *ret_length)
{
    char *out = malloc(2 * pattern.len + 1);
    size_t used = 0;
    if (!out)
        return NULL;
    for (size_t i = 0; i < pattern.len; i++) {
        char c = pattern.ptr[i];
        if (c == '%' || c == '_' || c == FILTER_SQL_ESCAPE[0])
            out[used++] = FILTER_SQL_ESCAPE[0];
        out[used++] = c == LIKE_ANY ? '%' : c == LIKE_ONE ? '_' : c;
    }
    out[used] = 0;
    *ret_length = used;
    return out;
}
