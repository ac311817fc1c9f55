/* SPDX-License-Identifier: MIT */
#ifndef COMMON_MODEL_MESSAGE_H
#define COMMON_MODEL_MESSAGE_H

/* message: the body of a job's message, {"v":1,"job":"<uuid>","epoch":<n>}: a wake-up, nothing in
 * it is believed without the database. Members that a later version adds are ignored.
 * Threads: any. Memory: none is kept. */

#include "common/base/err.h"
#include "common/base/sv.h"
#include "common/base/uuid.h"

#define MESSAGE_VERSION 1
#define MESSAGE_SIZE_MAX 1024 /* bytes; a larger body is not a message of ours */

struct message {
    struct uuid job;
    uint32_t epoch;
};

/* Text ended by NUL into ret_text (at least MESSAGE_SIZE_MAX bytes); answers its length. */
size_t message_write(const struct message *message, char *ret_text);
/* ERR_MALFORMED or ERR_TOO_LARGE for anything else, with what was wrong. */
MUST_USE enum err_code message_read(struct sv body, struct message *ret_message, struct err *err);

#endif
