/* SPDX-License-Identifier: MIT */
#ifndef READERS_RECOVERY_TESTER_H
#define READERS_RECOVERY_TESTER_H

/* tester: has what jobs wait for come about? Rows are in tester.def. A tester asks, changes nothing
 * (but queue_ready, which declares), and comes back before its deadline: every outside call that it
 * makes has one.
 * Threads: any; a tester runs on several at once. Memory: borrowed for the call. */

#include "common/base/address.h"
#include "common/bus/publisher.h"
#include "common/store/store.h"

#include <jansson.h>

enum test_result {
    TEST_CLEAR,       /* `jobs` may go on */
    TEST_NOT_YET,     /* asked, and no */
    TEST_CANNOT_TELL, /* nobody could be asked: no job ever fails by that */
    TEST_NEVER,       /* it makes no sense to wait any longer */
    TEST_RESULT_COUNT
};
const char *test_result_text(enum test_result result); /* "clear", "not yet", ... */

#define TEST_ALL_JOBS UINT32_MAX
#define TEST_DETAIL_SIZE 300

struct test_answer {
    enum test_result result;
    uint32_t jobs; /* TEST_CLEAR: how many */
    char detail[TEST_DETAIL_SIZE];
};

struct test_site { /* what testers may use */
    struct store *store;
    struct bus_publisher *publisher;
    uint32_t timeout_ms;
    struct address_nets networks; /* not public, but tests may go there */
    bool link_local;              /* also to what hosts keep for themselves */
};

struct test_question {
    const struct test_site *site;
    const char *tenant;
    const json_t *params; /* an object */
    int64_t deadline_ms;  /* clock_mono_ms */
};

/* Asks the tester of this name. One that is not known, or params that are none, cannot tell. */
struct test_answer test_run(const struct test_site *site, const char *tenant, const char *tester,
                            const char *params);
/* It asks a host that a user has named. */
bool test_goes_out(const char *tester);
/* Once, before the first test, and after the last one. */
MUST_USE enum err_code test_start(struct err *err);
void test_end(void);

/* ---- for testers ---------------------------------------------------------------------------- */

typedef struct test_answer tester_fn(const struct test_question *question);
#define TESTER(name, goes) tester_fn tester_##name;
#include "readers/recovery/tester.def"
#undef TESTER

struct test_answer test_clear(uint32_t jobs);
struct test_answer test_says(enum test_result result, const char *format, ...) PRINTF_LIKE(2, 3);
/* Nobody could be asked: a database or broker that is away. */
struct test_answer test_failed(const struct err *err);
/* A text member; NULL if there is none. */
const char *test_param(const struct test_question *question, const char *name);
struct test_answer test_lacks(const char *name);
int64_t test_left_ms(const struct test_question *question); /* at least 1 */

#endif
