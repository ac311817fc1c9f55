/* SPDX-License-Identifier: MIT */
#ifndef COMMON_AUTH_BASE64URL_H
#define COMMON_AUTH_BASE64URL_H

/* base64url: RFC 7515 appendix C, strictly: no padding, no other character, no stray bits. The
 * decoders of our libraries forgive all three, and a token must have one spelling only.
 * Threads: any. */

#include "common/base/base.h"
#include "common/base/buf.h"
#include "common/base/sv.h"

/* Appends the bytes; false if text is not such an encoding, or buf is full. */
MUST_USE bool base64url_decode(struct sv text, struct buf *buf);
bool base64url_encode(struct sv bytes, struct buf *buf);

#endif
