/* SPDX-License-Identifier: MIT */
#include "worker/runner/filter.h"

#include "common/base/base.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>

#define FIELD_AT(member) (unsigned)offsetof(struct seccomp_data, member)
#define LOAD(at) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at)
#define IF_EQUAL(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, value)
#define HALF 4 /* of an argument: the halves are asked for zero, so their order does not matter */

/* The number of prlimit64 for each way to make system calls. */
#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#define NATIVE_PRLIMIT 302U
#define X32_PRLIMIT (0x40000000U | 302U)
#define OTHER AUDIT_ARCH_I386
#define OTHER_PRLIMIT 340U
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#define NATIVE_PRLIMIT 261U
#define X32_PRLIMIT NATIVE_PRLIMIT
#define OTHER AUDIT_ARCH_ARM
#define OTHER_PRLIMIT 369U
#endif

#ifdef NATIVE
static struct sock_filter steps[] = {
    LOAD(FIELD_AT(arch)),
    IF_EQUAL(NATIVE, 0, 4),
    LOAD(FIELD_AT(nr)),
    IF_EQUAL(NATIVE_PRLIMIT, 4, 0),
    IF_EQUAL(X32_PRLIMIT, 3, 0),
    RETURN(SECCOMP_RET_ALLOW),
    LOAD(FIELD_AT(nr)), /* of another architecture */
    IF_EQUAL(OTHER_PRLIMIT, 0, 6),
    LOAD(FIELD_AT(args[0])), /* the process; 0 is the caller */
    IF_EQUAL(0, 4, 0),
    LOAD(FIELD_AT(args[2])), /* the new limits; NULL asks only */
    IF_EQUAL(0, 0, 3),
    LOAD(FIELD_AT(args[2]) + HALF),
    IF_EQUAL(0, 0, 1),
    RETURN(SECCOMP_RET_ALLOW),
    RETURN(SECCOMP_RET_ERRNO | EPERM),
};
const struct sock_fprog filter_program = {ARRAY_LEN(steps), steps};
#else
const struct sock_fprog filter_program = {0, NULL};
#endif
