/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_RANGE_H
#define WEBAPP_RANGE_H

/* range: the Range header (RFC 9110, section 14): one range of bytes. Several ranges, other units
 * and what cannot be read are ignored, as the RFC allows: the whole is sent then.
 * Threads: any. Memory: none. */

#include "common/base/sv.h"

enum range_kind { RANGE_WHOLE, RANGE_PART, RANGE_BEYOND /* 416 */ };

struct range {
    enum range_kind kind;
    uint64_t offset; /* of a part */
    uint64_t length;
};

struct range range_parse(struct sv header, uint64_t size_bytes);

#endif
