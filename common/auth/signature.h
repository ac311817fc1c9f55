/* SPDX-License-Identifier: MIT */
#ifndef COMMON_AUTH_SIGNATURE_H
#define COMMON_AUTH_SIGNATURE_H

/* signature: the signature of a JWS (RFC 7515) by OpenSSL. A library for JWT would have a word in
 * the header as well: libjwt 1.10 refuses every typ but JWT, and at+jwt (RFC 9068) with it. For
 * this folder only.
 * Threads: any. Memory: none. */

#include "common/auth/auth_key.h"

/* text: what was signed. ERR_UNAUTHENTICATED: it is not that of the key, by the key's algorithm. */
MUST_USE enum err_code signature_check(const struct auth_key *key, struct sv text,
                                       struct sv signature, struct err *err);

#endif
