/* SPDX-License-Identifier: MIT */
#include "cli/terminal.h"

#include <locale.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#define TIME_LENGTH 19 /* of "2026-11-22T10:45:51" */
#define CUT_MARK "\xE2\x80\xA6"

size_t terminal_width(void)
{
    struct winsize size = {0};
    if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
        return 0;
    return size.ws_col;
}

bool terminal_has_colours(void)
{
    const char *no = getenv("NO_COLOR"); /* NOLINT(concurrency-mt-unsafe): one thread */
    const char *term = getenv("TERM");   /* NOLINT(concurrency-mt-unsafe) */
    return isatty(STDOUT_FILENO) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

/* The character at text: its bytes, and the columns that it takes. The tables are those of UTF-8,
 * whatever the locale: the service's text is UTF-8. */
static size_t read_character(const char *text, mbstate_t *state, size_t *ret_columns)
{
    wchar_t c = 0;
    size_t length = mbrtowc(&c, text, strlen(text), state); /* NOLINT(concurrency-mt-unsafe) */
    *ret_columns = 1;
    if (length == 0 || length > 4) { /* no UTF-8 here */
        *state = (mbstate_t){0};
        return 1;
    }
    int columns = wcwidth(c);
    *ret_columns = columns < 0 ? 1 : (size_t)columns;
    return length;
}

/* Bytes of text that take at most so many columns. */
static size_t fitting(const char *text, size_t columns, size_t *ret_columns)
{
    static locale_t utf8;
    size_t used = 0;
    size_t at = 0;
    mbstate_t state = {0};
    if (!utf8)
        utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", NULL);
    locale_t before = uselocale(utf8 ? utf8 : LC_GLOBAL_LOCALE);
    while (text[at]) {
        size_t wide = 0;
        size_t length = read_character(text + at, &state, &wide);
        if (used + wide > columns)
            break;
        used += wide;
        at += length;
    }
    (void)uselocale(before);
    *ret_columns = used;
    return at;
}

size_t terminal_text_width(const char *text)
{
    size_t columns = 0;
    (void)fitting(text, SIZE_MAX - 2, &columns);
    return columns;
}

void terminal_cut(char *text, size_t columns)
{
    size_t used = 0;
    size_t length = strlen(text);
    if (columns == 0 || terminal_text_width(text) <= columns)
        return;
    size_t kept = fitting(text, columns - 1, &used);
    if (kept + strlen(CUT_MARK) <= length)
        memcpy(text + kept, CUT_MARK, sizeof(CUT_MARK));
    else
        text[kept] = 0;
}

/* ---- times ----------------------------------------------------------------------------------- */

bool terminal_read_time(const char *text, int64_t *ret_s)
{
    struct tm when = {0};
    size_t length = strlen(text);
    const char *end = length > TIME_LENGTH ? strptime(text, "%Y-%m-%dT%H:%M:%S", &when) : NULL;
    if (!end || end != text + TIME_LENGTH || text[length - 1] != 'Z')
        return false;
    if (strspn(end, ".0123456789") != length - TIME_LENGTH - 1)
        return false;
    *ret_s = (int64_t)timegm(&when);
    return true;
}

void terminal_write_time(const char *text, char *ret_text, size_t size)
{
    int64_t at_s = 0;
    struct tm when;
    char local[40] = "";
    char zone[16] = "";
    (void)snprintf(ret_text, size, "%s", text);
    if (!terminal_read_time(text, &at_s))
        return;
    time_t at = (time_t)at_s;
    if (!localtime_r(&at, &when))
        return;
    if (isatty(STDOUT_FILENO)) {
        (void)strftime(local, sizeof(local), "%Y-%m-%d %H:%M:%S %Z", &when);
        (void)snprintf(ret_text, size, "%s", local);
        return;
    }
    if (when.tm_gmtoff == 0)
        return;
    (void)strftime(local, sizeof(local), "%Y-%m-%dT%H:%M:%S", &when);
    (void)strftime(zone, sizeof(zone), "%z", &when);
    (void)snprintf(ret_text, size, "%s%.*s%.3s:%s", local, (int)(strlen(text) - TIME_LENGTH - 1),
                   text + TIME_LENGTH, zone, zone + 3);
}

void terminal_write_age(int64_t seconds, char *ret_text, size_t size)
{
    static const struct {
        int64_t unit_s;
        char letter;
    } units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
    size_t i = 0;
    seconds = seconds < 0 ? 0 : seconds; /* its clock is ahead of ours */
    while (i + 1 < ARRAY_LEN(units) && seconds < units[i].unit_s)
        i++;
    (void)snprintf(ret_text, size, "%lld%c", (long long)(seconds / units[i].unit_s),
                   units[i].letter);
}
