/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_DEAD_H
#define WEBAPP_DEAD_H

/* dead: what the files of the dead messages share. Threads: any handler thread. */

#include "common/store/dead_store.h"
#include "webapp/request.h"
#include "webapp/web.h"

/* The id in the path; ERR_NOT_FOUND if it is none. */
MUST_USE enum err_code dead_path_id(const struct request *req, struct uuid *ret_id,
                                    struct err *err);
/* The message as it is now, as the answer. */
MUST_USE enum err_code dead_reply(struct request *req, const struct uuid *id, struct err *err);
/* whole: with its body, as one message is shown. */
json_t *dead_view(const struct dead_message *message, bool whole);

#endif
