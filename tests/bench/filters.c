/* SPDX-License-Identifier: MIT */
/* filters QUEUES: how long the choice of a queue takes when none of so many simple filters matches,
 * and whether it allocates (malloc and its like are wrapped by the linker). */

#include "common/filter/filter.h"
#include "webapp/router.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { QUEUES_MAX = 10000, EVALUATIONS = 2000000 };

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

static atomic_ulong allocations;

void *__wrap_malloc(size_t size)
{
    atomic_fetch_add(&allocations, 1);
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    atomic_fetch_add(&allocations, 1);
    return __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    atomic_fetch_add(&allocations, 1);
    return __real_realloc(old, size);
}

static const char *const texts[] = {
    "owner = 'user%u'",
    "memoryMB > 6000%u",
    "name LIKE 'project%u-%%'",
    "'tag%u' IN tags",
    "appId = 'app%u' AND nodeCount > 1",
    "env.PROJECT = 'p%u'",
    "maxMinutes BETWEEN 2000%u AND 9000000",
    "systemId IN ('west%u', 'east')",
};

static struct filter *make(unsigned number)
{
    char text[200];
    struct filter *filter = NULL;
    struct err err = {0};
    const char *form = texts[number % ARRAY_LEN(texts)];
    const char *at = strstr(form, "%");
    /* The number goes in by hand: the form is no literal. */
    const char *rest = strchr(at, 'u') + 1;
    (void)snprintf(text, sizeof(text), "%.*s%u%s", (int)(at - form), form, number,
                   strncmp(rest, "-%%", 3) == 0 ? "-%'" : rest);
    if (filter_compile(&filter_queue_schema, sv_of(text), &filter, NULL, &err) != ERR_OK) {
        fprintf(stderr, "%s: %s\n", text, err.text);
        exit(1);
    }
    return filter;
}

static double now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static const char request_text[] =
    "{\"name\":\"bench\",\"command\":[\"/bin/true\"],\"tags\":[\"a\",\"b\",\"c\"],"
    "\"memoryMB\":512,\"env\":{\"PROJECT\":\"none\",\"OTHER\":\"x\"},\"maxMinutes\":10,"
    "\"systemId\":\"north\",\"appId\":\"demo\",\"appVersion\":\"1\"}";

int main(int argc, char **argv)
{
    static struct filter *filters[QUEUES_MAX];
    struct job_request *request = NULL;
    struct err err = {0};
    unsigned long count = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;

    if (count < 1 || count > QUEUES_MAX) {
        fprintf(stderr, "usage: filters QUEUES\n");
        return 2;
    }
    for (unsigned i = 0; i < count; i++)
        filters[i] = make(i);
    if (job_request_parse(sv_of(request_text), &request, &err) != ERR_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    unsigned long turns = EVALUATIONS / count, before = atomic_load(&allocations), matched = 0;
    double from = now_ns();
    for (unsigned long turn = 0; turn < turns; turn++) {
        struct routing_row row;
        routing_row_init(&row, request, "acme", "ann", (int64_t)turn);
        for (unsigned long i = 0; i < count; i++)
            matched += filter_eval(filters[i], &row.row) == FILTER_TRUE;
    }
    double spent = now_ns() - from;
    printf("{\"selection_us\":%.4f,\"filter_ns\":%.2f,\"allocations\":%lu,\"matched\":%lu}\n",
           spent / (double)turns / 1e3, spent / (double)turns / (double)count,
           atomic_load(&allocations) - before, matched);
    for (unsigned i = 0; i < count; i++)
        filter_free(filters[i]);
    job_request_free(request);
    return 0;
}
