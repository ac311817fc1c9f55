/* SPDX-License-Identifier: MIT */
#ifndef COMMON_BASE_LANDLOCK_H
#define COMMON_BASE_LANDLOCK_H

/* landlock: the system calls of Landlock, which the C library does not have, and its constants as
 * far as this kernel knows them (the headers may be older).
 * Threads: any. Memory: none. */

#include "common/base/base.h"

#define LANDLOCK_EXECUTE ((uint64_t)1 << 0)
#define LANDLOCK_WRITE_FILE ((uint64_t)1 << 1)
#define LANDLOCK_READ_FILE ((uint64_t)1 << 2)
#define LANDLOCK_READ_DIR ((uint64_t)1 << 3)
#define LANDLOCK_MAKE_CHAR ((uint64_t)1 << 6)
#define LANDLOCK_MAKE_BLOCK ((uint64_t)1 << 11)
#define LANDLOCK_REFER ((uint64_t)1 << 13)
#define LANDLOCK_TRUNCATE ((uint64_t)1 << 14)
#define LANDLOCK_OF_FILES                                                                          \
    (LANDLOCK_EXECUTE | LANDLOCK_WRITE_FILE | LANDLOCK_READ_FILE | LANDLOCK_TRUNCATE)

#define LANDLOCK_SCOPES_ABI 6 /* from here on signals and abstract sockets are confined too */

/* The version that the kernel offers; 0: none (too old, not enabled, or forbidden to us). */
int landlock_abi(void);
/* The accesses to files that this version knows, but for ioctl on devices. */
uint64_t landlock_handled(int abi);
/* A rule set that forbids all of that, and signals and abstract sockets out of the domain where it
 * can; a descriptor, or -1 with errno. */
int landlock_create(int abi);
/* Allows access to what fd is, and beneath it if it is a folder; -1 with errno. */
int landlock_allow(int ruleset, int fd, uint64_t access);

#endif
