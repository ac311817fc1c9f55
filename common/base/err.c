/* SPDX-License-Identifier: MIT */
#include "common/base/err.h"

#include <assert.h>
#include <stdarg.h>

static const struct {
    const char *name;
    const char *title;
    const char *help;
    int number;
    int http;
    enum err_settlement settlement;
} err_table[ERR_CODE_COUNT] = {
    [ERR_OK] = {"OK", "Done", "", 0, 200, SETTLE_ACK},
#define ERR(name, number, http, settlement, title, help)                                           \
    [ERR_##name] = {#name, title, help, number, http, SETTLE_##settlement},
#include "common/base/err.def"
#undef ERR
};

PRINTF_LIKE(3, 0)
static enum err_code fill(struct err *err, enum err_code code, const char *format, va_list args)
{
    assert(code > ERR_OK && code < ERR_CODE_COUNT);
    if (!err)
        return code;
    if (err->code != ERR_OK)
        return err->code;
    err->code = code;
    (void)vsnprintf(err->text, sizeof(err->text), format, args);
    return code;
}

enum err_code err_set(struct err *err, enum err_code code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    enum err_code rc = fill(err, code, format, args);
    va_end(args);
    return rc;
}

enum err_code err_set_errno(struct err *err, enum err_code code, int errno_value,
                            const char *format, ...)
{
    if (err && err->code != ERR_OK)
        return err->code;
    va_list args;
    va_start(args, format);
    enum err_code rc = fill(err, code, format, args);
    va_end(args);
    if (err) {
        char reason[128];
        size_t used = strlen(err->text);
        err->sys_errno = errno_value;
        (void)snprintf(err->text + used, sizeof(err->text) - used, ": %s",
                       strerror_r(errno_value, reason, sizeof(reason)));
    }
    return rc;
}

/* A list that cannot grow, or is full, stays as it is: the first fault is told in any case. */
static void list_add(struct err_list *list, const struct err *fault)
{
    if (list->count == ERR_LIST_MAX)
        return;
    struct err *items = realloc(list->items, (list->count + 1) * sizeof(*items));
    if (!items)
        return;
    list->items = items;
    items[list->count++] = *fault;
}

void err_list_done(struct err_list *list)
{
    free(list->items);
    *list = (struct err_list){0};
}

bool err_wants_more(const struct err *err)
{
    return err && err->list && err->list->count < ERR_LIST_MAX && err_http(err->code) < 500;
}

enum err_code err_set_at(struct err *err, enum err_code code, const char *pointer,
                         const char *format, ...)
{
    struct err fault = {0};
    if (err && err->code != ERR_OK && !err->list)
        return err->code;
    va_list args;
    va_start(args, format);
    (void)fill(&fault, code, format, args);
    va_end(args);
    (void)snprintf(fault.pointer, sizeof(fault.pointer), "%s", pointer);
    if (!err)
        return code;
    if (err->list)
        list_add(err->list, &fault);
    if (err->code == ERR_OK) {
        fault.list = err->list;
        *err = fault;
    }
    return err->code;
}

void err_prefix(struct err *err, const char *format, ...)
{
    if (!err || err->code == ERR_OK)
        return;
    char old[ERR_TEXT_MAX];
    memcpy(old, err->text, sizeof(old));
    va_list args;
    va_start(args, format);
    int used = vsnprintf(err->text, sizeof(err->text), format, args);
    va_end(args);
    if (used >= 0 && (size_t)used < sizeof(err->text))
        (void)snprintf(err->text + used, sizeof(err->text) - (size_t)used, "%s", old);
}

void err_clear(struct err *err)
{
    *err = (struct err){0};
}

const char *err_name(enum err_code code)
{
    return err_table[code].name;
}

const char *err_title(enum err_code code)
{
    return err_table[code].title;
}

const char *err_help(enum err_code code)
{
    return err_table[code].help;
}

int err_number(enum err_code code)
{
    return err_table[code].number;
}

int err_http(enum err_code code)
{
    return err_table[code].http;
}

enum err_settlement err_settlement(enum err_code code)
{
    return err_table[code].settlement;
}
