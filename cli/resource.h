/* SPDX-License-Identifier: MIT */
#ifndef CLI_RESOURCE_H
#define CLI_RESOURCE_H

/* resource: the kinds of things that commands take by id or name (resource.def).
 * Threads: immutable. */

#include "common/base/base.h"

enum resource {
#define RESOURCE(id, ...) RESOURCE_##id,
#include "cli/resource.def"
#undef RESOURCE
};

#endif
