/* SPDX-License-Identifier: MIT */
#ifndef COMMON_BASE_LAST_LINE_H
#define COMMON_BASE_LAST_LINE_H

/* last_line: the last line of a file that a job wrote, fit to be quoted: UTF-8, no control
 * character and none that turns the direction of text, each of these a '?'. What a job writes may
 * be meant to deceive: whoever quotes it says whose words they are.
 * Threads: any. Memory: none. */

#include "common/base/sv.h"

#define LAST_LINE_MAX 200 /* bytes that are quoted; then "..." */
#define LAST_LINE_SIZE (LAST_LINE_MAX + 4)

/* Of a regular file, however long it is: only its end is read. false: it has none but blanks, or
 * cannot be read. */
MUST_USE bool last_line_read(int fd, char ret_line[LAST_LINE_SIZE]);
/* The same of bytes. */
MUST_USE bool last_line_of(struct sv bytes, char ret_line[LAST_LINE_SIZE]);
/* Text of strangers that is no file: as above, all of it; cut to size. Answers ret_text. */
const char *text_quotable(struct sv text, char *ret_text, size_t size);

#endif
