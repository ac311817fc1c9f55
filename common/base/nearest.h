/* SPDX-License-Identifier: MIT */
#ifndef COMMON_BASE_NEAREST_H
#define COMMON_BASE_NEAREST_H

/* nearest: the known name that was most likely meant by an unknown one, for refusals.
 * Threads: any. Memory: names are borrowed. */

#include "common/base/sv.h"

/* Set name, try each known name, read best. */
struct nearest {
    struct sv name;
    const char *best; /* NULL: none is near enough */
    size_t best_distance;
};
void nearest_try(struct nearest *nearest, const char *known);
/* Appends known to a list such as "a, b"; ", ..." once size is used up. */
void nearest_add_known(char *list, size_t size, const char *known);

#endif
