/* SPDX-License-Identifier: MIT */
#ifndef WORKER_GLOB_H
#define WORKER_GLOB_H

/* glob: patterns that choose files to archive. `*` and `?` match within one part of a path, `**`
 * across parts (and a part that is only `**` also none), [a-z] and [!a-z] one byte. A pattern that
 * matches a directory chooses everything beneath it. Only the last star of each kind is tried
 * again, so there is no exponential backtracking.
 * Threads: any. Memory: none. */

#include "common/base/base.h"

bool glob_match(const char *pattern, const char *path);
/* As glob_match, for the path or any directory above it. */
bool glob_covers(const char *pattern, const char *path);

#endif
