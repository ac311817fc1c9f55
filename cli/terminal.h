/* SPDX-License-Identifier: MIT */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

/* terminal: what stdout can show, and how wide text is there.
 * Threads: owner. */

#include "common/base/base.h"

size_t terminal_width(void); /* columns of the terminal that stdout is; 0: it is none */
/* Whether stdout takes colours: a terminal, not TERM=dumb, and NO_COLOR is not set. */
bool terminal_has_colours(void);
/* Columns that UTF-8 text takes: 2 for a wide character, 0 for a combining one. */
size_t terminal_text_width(const char *text);
/* Cuts text to this many columns; "…" stands for what was cut. */
void terminal_cut(char *text, size_t columns);

/* Times as the service writes them (RFC 3339, UTC). false: the text is none. */
MUST_USE bool terminal_read_time(const char *text, int64_t *ret_s);
/* In the local time: "2026-11-22 11:45:51 CET" on a terminal; RFC 3339 with its offset elsewhere,
 * where a program may read it. A text that is no time is copied. */
void terminal_write_time(const char *text, char *ret_text, size_t size);
/* "12s", "5m", "3h", "9d". */
void terminal_write_age(int64_t seconds, char *ret_text, size_t size);

#endif
