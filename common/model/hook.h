/* SPDX-License-Identifier: MIT */
#ifndef COMMON_MODEL_HOOK_H
#define COMMON_MODEL_HOOK_H

/* hook: what a webhook is told of, and where it is. Threads: any. Memory: views are of the text
 * that went in. */

#include "common/base/err.h"
#include "common/base/sv.h"
#include "common/model/job_state.h"

#define HOOK_URL_BYTES 2048
#define HOOK_URL_SIZE (HOOK_URL_BYTES + 1)
#define HOOK_NAME_SIZE 65
#define HOOK_STATES_SIZE 256
#define HOOK_PER_JOB_MAX 8
#define HOOK_PER_TENANT_MAX 100

struct hook_url {
    bool is_https;
    struct sv host; /* with the brackets of an IPv6 address */
    uint16_t port;
};

/* http or https, a host, perhaps a port; no user, no password, no fragment, nothing but printable
 * ASCII. ERR_INVALID says which of these. */
MUST_USE enum err_code hook_url_read(const char *url, struct hook_url *ret_url, struct err *err);

/* States as bits (1u << JOB_FINISHED) and as a list: "FINISHED,FAILED". */
#define HOOK_STATES_DEFAULT ((1u << JOB_FINISHED) | (1u << JOB_CANCELLED) | (1u << JOB_FAILED))
const char *hook_states_text(unsigned states, char *ret_text); /* HOOK_STATES_SIZE bytes */
unsigned hook_states_parse(const char *text);                  /* unknown words are left out */

#endif
