/* SPDX-License-Identifier: MIT */
#include "webapp/range.h"

#define UNIT "bytes="

static struct range part_of(uint64_t first, uint64_t last, uint64_t size)
{
    if (first >= size)
        return (struct range){.kind = RANGE_BEYOND};
    if (last >= size)
        last = size - 1;
    return (struct range){RANGE_PART, first, last - first + 1};
}

struct range range_parse(struct sv header, uint64_t size_bytes)
{
    const struct range whole = {.kind = RANGE_WHOLE, .length = size_bytes};
    size_t unit = sizeof(UNIT) - 1;
    if (header.len <= unit || memcmp(header.ptr, UNIT, unit) != 0)
        return whole;
    struct sv spec = {header.ptr + unit, header.len - unit};
    const char *dash = memchr(spec.ptr, '-', spec.len);
    if (!dash)
        return whole;
    struct sv from = {spec.ptr, (size_t)(dash - spec.ptr)};
    struct sv to = {dash + 1, spec.len - from.len - 1};
    uint64_t first = 0;
    uint64_t last = UINT64_MAX;
    if (to.len > 0 && !sv_u64(to, UINT64_MAX, &last))
        return whole;
    if (from.len == 0) { /* the last bytes: "-500" */
        if (to.len == 0)
            return whole;
        if (last == 0)
            return (struct range){.kind = RANGE_BEYOND};
        return part_of(last < size_bytes ? size_bytes - last : 0, UINT64_MAX, size_bytes);
    }
    if (!sv_u64(from, UINT64_MAX, &first) || last < first)
        return whole;
    return part_of(first, last, size_bytes);
}
