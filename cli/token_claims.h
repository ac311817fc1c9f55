/* SPDX-License-Identifier: MIT */
#ifndef CLI_TOKEN_CLAIMS_H
#define CLI_TOKEN_CLAIMS_H

/* token_claims: what a token says of itself. Its signature is not checked: for messages to its
 * holder only. Threads: any. */

#include "common/base/base.h"

struct token_claims {
    char user[256];    /* sub; "" if it says none */
    int64_t expires_s; /* exp, seconds since 1970; 0 if it says none */
};

/* false: it is no JSON Web Token. */
MUST_USE bool token_claims_read(const char *token, struct token_claims *ret_claims);

#endif
