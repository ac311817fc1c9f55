/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_HOOKS_H
#define WEBAPP_HOOKS_H

/* hooks: what subscriptions of tenants and of jobs share. Threads: any handler thread. */

#include "webapp/jobs.h"

/* Whether a webhook may go there at all, as far as that can be told without asking for the host's
 * address. ERR_INVALID at the pointer. */
MUST_USE enum err_code hook_url_allowed(const struct request *req, const char *url,
                                        const char *pointer, struct err *err);
/* Those of a request, checked, as they are stored. ERR_NOT_FOUND: there is no such secret. */
MUST_USE enum err_code submission_hooks(const struct request *req,
                                        const struct job_request *request,
                                        struct submission *submission, struct err *err);

#endif
