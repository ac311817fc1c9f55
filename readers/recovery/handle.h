/* SPDX-License-Identifier: MIT */
#ifndef READERS_RECOVERY_HANDLE_H
#define READERS_RECOVERY_HANDLE_H

/* handle: one cause whose time has come: asks its tester (or does what an operator wants), and
 * writes the verdict: a batch goes on, it is not yet, or it is enough.
 * Threads: any (one at a time per cause). */

#include "common/config/config.h"
#include "common/service/outbox.h"
#include "common/store/recovery_store.h"
#include "readers/recovery/tester.h"

struct handle_site {
    const struct config *cfg;
    struct test_site test;
    struct outbox *outbox;
};

#define HANDLE_GONE (-1)
#define HANDLE_LATER (-2)

/* Is asked before a test that goes out to another host. user: who submitted the first job that
 * waits. false: not now. */
struct handle_gate {
    bool (*enter)(void *arg, const char *user);
    void *arg;
};
/* *ret_due_ms: from now until it is due again; HANDLE_GONE: it is no more; HANDLE_LATER: the gate
 * was closed. ERR_FENCED: another leads. */
MUST_USE enum err_code handle_cause(const struct handle_site *site,
                                    const struct recovery_lead *lead, const struct uuid *id,
                                    const struct handle_gate *gate, int64_t *ret_due_ms,
                                    struct err *err);

#endif
