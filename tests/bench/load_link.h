/* SPDX-License-Identifier: MIT */
#ifndef TESTS_BENCH_LOAD_LINK_H
#define TESTS_BENCH_LOAD_LINK_H

/* load_link: one keep-alive connection of the load generator.
 * Threads: owner. Memory: load_link_new() gives, load_link_free() takes; the target is borrowed. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOAD_ID_SIZE 40

struct load_target {
    uint16_t port; /* of 127.0.0.1 */
    const char *method;
    const char *path;
    const char *body; /* NULL: none */
    size_t body_size;
};

struct load_record {
    int64_t due_ns; /* CLOCK_MONOTONIC; 0: never sent */
    int64_t sent_ns;
    int64_t done_ns;
    unsigned status;       /* 0: no answer */
    char id[LOAD_ID_SIZE]; /* first member "id" of the answer; "" without one */
};

struct load_link;

int64_t load_now_ns(void);
/* Connected; NULL when that cannot be. token may be NULL. */
struct load_link *load_link_new(const struct load_target *target, const char *token);
void load_link_free(struct load_link *link);
/* Sends one request and reads its answer; due_ns is the caller's, the rest is written. A link that
 * broke is opened anew for the next request. */
void load_link_call(struct load_link *link, uint64_t number, struct load_record *record);

#endif
