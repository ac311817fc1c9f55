/* SPDX-License-Identifier: MIT */
#ifndef COMMON_BASE_OPENSSL_H
#define COMMON_BASE_OPENSSL_H

/* openssl: OpenSSL beside our own errors: both have an ERR_STATE. Include this instead of, or
 * before, any <openssl/...>. */

#define ERR_STATE OPENSSL_ERR_STATE
#include <openssl/err.h>
#include <openssl/evp.h>
#undef ERR_STATE

#endif
