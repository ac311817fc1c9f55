/* SPDX-License-Identifier: MIT */
#ifndef COMMON_AUTH_HOOK_SIGN_H
#define COMMON_AUTH_HOOK_SIGN_H

/* hook_sign: how deliveries of webhooks are signed. A subscription has a random seed in the
 * database; its secret is made from the seed and from webhook.key, so that neither alone is enough
 * to sign (without a key: the seed alone). Signed is "<unix time>.<body>" by HMAC-SHA256 with the
 * text of the secret.
 * Threads: any. Memory: the caller's. */

#include "common/base/base.h"
#include "common/base/sv.h"

#define HOOK_SECRET_SIZE 64
#define HOOK_SIGNATURE_SIZE 65 /* 64 hexadecimal digits and NUL */

/* "whsec_..." into HOOK_SECRET_SIZE bytes, which are returned. */
const char *hook_secret(const char *key, struct sv seed, char *ret_secret);
const char *hook_signature(const char *secret, int64_t unix_s, struct sv body, char *ret_signature);

#endif
