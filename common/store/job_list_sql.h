/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_JOB_LIST_SQL_H
#define COMMON_STORE_JOB_LIST_SQL_H

/* job_list_sql: the one builder of SQL, for job_list.c. Its text comes from literals and from
 * filter_to_sql, which writes column names of ours and placeholders only; every value is a
 * parameter.
 * Threads: owner. Memory: the caller frees sql and rows. */

#include "common/base/buf.h"
#include "common/store/job_row.h"
#include "common/store/rows.h"

#define SQL_SIZE_MAX 200000

struct job_search_sql {
    const struct job_query *query;
    struct buf sql;
    struct db_arg args[DB_PARAMS_MAX];
    size_t arg_count;
    struct rows rows; /* struct job * */
    uint64_t count;
    uint32_t stretch;         /* rows of the index that the next one has */
    const struct uuid *after; /* the page, or the stretch, begins behind it */
    struct uuid place;        /* what after points to, from the second stretch on */
    struct uuid end;          /* the last id of the stretch */
    bool has_end;             /* else it goes to the end of the index */
};

/* Whether rows are read that the search then leaves out: stretch by stretch, lest one that finds
 * little reads them all. */
bool job_search_in_stretches(const struct job_query *query);
/* A page, up to the end of the stretch if it has one. ERR_TOO_LARGE, as the others. */
MUST_USE enum err_code job_search_build(struct job_search_sql *search, struct err *err);
/* The id that ends the next stretch. */
MUST_USE enum err_code job_search_build_end(struct job_search_sql *search, struct err *err);
MUST_USE enum err_code job_search_build_count(struct job_search_sql *search, uint32_t most,
                                              struct err *err);

#endif
