/* SPDX-License-Identifier: MIT */
#ifndef COMMON_FILTER_LIKE_H
#define COMMON_FILTER_LIKE_H

/* like: SQL LIKE. A prepared pattern holds bytes that stand for themselves and two that cannot
 * occur in UTF-8. Threads: any. Memory: none is allocated. */

#include "common/base/sv.h"

#define LIKE_ANY '\xFF' /* % : any number of characters */
#define LIKE_ONE '\xFE' /* _ : one character */

/* The whole of text matches. Time grows with the length of the text; it grows with that of the
 * pattern too where the pattern has _ behind a %. */
bool like_match(struct sv pattern, struct sv text);

#endif
