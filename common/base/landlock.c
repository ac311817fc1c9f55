/* SPDX-License-Identifier: MIT */
#include "common/base/landlock.h"

#include "common/base/fault.h"

#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#endif

#define CREATE_VERSION 1U
#define RULE_PATH_BENEATH 1
#define SCOPE_ALL 3U /* abstract sockets, signals */

struct ruleset_attr {
    uint64_t handled_fs;
    uint64_t handled_net;
    uint64_t scoped;
};

struct path_beneath {
    uint64_t allowed;
    int32_t parent_fd;
} __attribute__((packed));

int landlock_abi(void)
{
    if (FAULT_FAILS("runner.landlock"))
        return 0;
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_VERSION);
    return abi > 0 ? (int)abi : 0;
}

uint64_t landlock_handled(int abi)
{
    uint64_t first = ((uint64_t)1 << 13) - 1;
    if (abi >= 2)
        first |= LANDLOCK_REFER;
    if (abi >= 3)
        first |= LANDLOCK_TRUNCATE;
    return first;
}

/* Members that an older kernel does not know must be zero. */
int landlock_create(int abi)
{
    struct ruleset_attr attr = {.handled_fs = landlock_handled(abi),
                                .scoped = abi >= LANDLOCK_SCOPES_ABI ? SCOPE_ALL : 0};
    return (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0U);
}

int landlock_allow(int ruleset, int fd, uint64_t access)
{
    struct path_beneath rule = {.allowed = access, .parent_fd = fd};
    return (int)syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &rule, 0U);
}
