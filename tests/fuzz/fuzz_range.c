/* SPDX-License-Identifier: MIT */
#include "webapp/range.h"

#include "tests/fuzz/fuzz.h"

/* Input: eight bytes of size, then a Range header. No part lies outside the file. */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    uint64_t file = 0;
    if (size < sizeof(file))
        return 0;
    memcpy(&file, bytes, sizeof(file));
    struct range range =
        range_parse((struct sv){(const char *)bytes + sizeof(file), size - sizeof(file)}, file);
    if (range.kind == RANGE_PART)
        MUST(range.offset < file && range.length >= 1 && range.length <= file - range.offset);
    if (range.kind == RANGE_WHOLE)
        MUST(range.offset == 0 && range.length == file);
    return 0;
}
