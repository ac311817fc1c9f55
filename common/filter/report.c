/* SPDX-License-Identifier: MIT */
#include "common/filter/node.h"

#include <stdarg.h>

#define PICTURE_BEFORE 60 /* characters shown before the place, at most */
#define PICTURE_AFTER 30

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

struct filter_place filter_place(struct sv text, size_t position)
{
    struct filter_place place = {.position = position, .line = 1, .column = 1};
    for (size_t i = 0; i < position && i < text.len; i++) {
        if (text.ptr[i] == '\n') {
            place.line++;
            place.column = 1;
        } else if (!is_continuation(text.ptr[i])) {
            place.column++;
        }
    }
    return place;
}

/* Byte that is `characters` before `at`, but not before `floor`. */
static size_t step_back(struct sv text, size_t at, size_t floor, unsigned characters)
{
    while (at > floor && characters-- > 0) {
        at--;
        while (at > floor && is_continuation(text.ptr[at]))
            at--;
    }
    return at;
}

static void draw(struct sv text, size_t position, char *ret_picture)
{
    size_t line = position;
    while (line > 0 && text.ptr[line - 1] != '\n')
        line--;
    size_t at = step_back(text, position, line, PICTURE_BEFORE);
    size_t used = 0;
    unsigned caret = 0;
    unsigned after = 0;
    for (; at < text.len && text.ptr[at] != '\n' && after < PICTURE_AFTER; at++) {
        bool starts = !is_continuation(text.ptr[at]);
        caret += at < position && starts;
        after += at >= position && starts;
        ret_picture[used++] = (unsigned char)text.ptr[at] < 0x20 ? ' ' : text.ptr[at];
    }
    while (at < text.len && is_continuation(text.ptr[at]))
        ret_picture[used++] = text.ptr[at++];
    (void)snprintf(ret_picture + used, FILTER_PICTURE_SIZE - used, "\n%*s^", (int)caret, "");
}

enum err_code filter_refuse(const struct filter *f, struct filter_report *report, size_t at,
                            struct err *err, const char *format, ...)
{
    char reason[ERR_TEXT_MAX];
    struct sv text = {f->text, f->text_len};
    va_list args;
    va_start(args, format);
    (void)vsnprintf(reason, sizeof(reason), format, args);
    va_end(args);
    struct filter_place place = filter_place(text, at);
    if (report) {
        report->place = place;
        draw(text, at, report->picture);
    }
    if (place.line == 1)
        return err_set(err, ERR_FILTER, "at column %u: %s", place.column, reason);
    return err_set(err, ERR_FILTER, "at line %u, column %u: %s", place.line, place.column, reason);
}

const char *filter_type_name(unsigned type)
{
    static const char *const names[] = {
        [FILTER_NULL] = "unknown",     [FILTER_STRING] = "a string", [FILTER_NUMBER] = "a number",
        [FILTER_BOOL] = "a condition", [FILTER_LIST] = "a list",     [FILTER_TIME] = "a time",
    };
    return names[type];
}
