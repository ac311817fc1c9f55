/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_JOB_SEARCH_H
#define WEBAPP_JOB_SEARCH_H

/* job_search: the query of a list of jobs, read from the parameters of GET /v1/jobs.
 * Threads: owner. Memory: job_search_done() frees; the query points into the search. */

#include "common/filter/filter_sql.h"
#include "common/store/job_store.h"
#include "webapp/allowance.h"
#include "webapp/request.h"

struct job_search {
    struct job_query query;
    struct buf name; /* text that names the query: cursors are bound to it */
    struct uuid after;
    char owner[USER_SIZE];
    char queue[QUEUE_NAME_SIZE];
    char job_name[JOB_NAME_SIZE];
    char app_id[APP_ID_SIZE];
    struct buf sql;
    struct filter_params values;
    struct store_param *params;
    bool is_costly; /* each row that is looked at takes the server long */
};

/* ERR_INVALID, ERR_FILTER, ERR_CURSOR with "?parameter" as the pointer. report tells where a filter
 * is wrong. */
MUST_USE enum err_code job_search_read(const struct request *req, struct job_search *ret_search,
                                       struct filter_report *report, struct err *err);
void job_search_done(struct job_search *search);
/* A search's place among those that the database server works on at once; let it go when the search
 * is done. ERR_RATE, ERR_OVERLOADED. */
MUST_USE enum err_code job_search_begin(const struct request *req, const struct job_search *search,
                                        struct allowance_hold *ret_hold, struct err *err);
#define JOB_SEARCH_AUTO __attribute__((cleanup(job_search_done)))

#endif
