/* SPDX-License-Identifier: MIT */
#include "cli/sse.h"

static struct sv field_value(struct sv line, size_t name_length)
{
    size_t start = name_length + 1;
    if (start < line.len && line.ptr[start] == ' ')
        start++;
    if (start > line.len)
        start = line.len;
    return (struct sv){line.ptr + start, line.len - start};
}

static bool end_event(struct sse *sse)
{
    bool go_on = true;
    if (sse->data.len > 0 && !sse->data.failed)
        go_on = sse->on_event(sse->arg, sse->event[0] ? sse->event : "message",
                              (struct sv){sse->data.ptr, sse->data.len - 1});
    buf_clear(&sse->data);
    sse->event[0] = 0;
    return go_on;
}

static bool take_line(struct sse *sse)
{
    struct sv line = buf_sv(&sse->line);
    if (line.len > 0 && line.ptr[line.len - 1] == '\r')
        line.len--;
    if (line.len == 0)
        return end_event(sse);
    const char *colon = memchr(line.ptr, ':', line.len);
    struct sv name = {line.ptr, colon ? (size_t)(colon - line.ptr) : line.len};
    struct sv value = field_value(line, name.len);
    if (sv_is(name, "data")) {
        buf_add_sv(&sse->data, value);
        buf_add_text(&sse->data, "\n");
    } else if (sv_is(name, "event")) {
        if (!sv_copy(value, sse->event, sizeof(sse->event)))
            sse->event[0] = 0;
    } else if (sv_is(name, "id")) {
        if (!sv_copy(value, sse->id, sizeof(sse->id)))
            sse->id[0] = 0;
    }
    return true;
}

bool sse_take(void *arg, struct sv bytes)
{
    struct sse *sse = arg;
    while (bytes.len > 0) {
        const char *end = memchr(bytes.ptr, '\n', bytes.len);
        size_t length = end ? (size_t)(end - bytes.ptr) : bytes.len;
        if (!buf_add(&sse->line, bytes.ptr, length))
            return false;
        if (!end)
            return true;
        if (!take_line(sse))
            return false;
        buf_clear(&sse->line);
        bytes = (struct sv){end + 1, bytes.len - length - 1};
    }
    return true;
}

void sse_restart(struct sse *sse)
{
    buf_clear(&sse->line);
    buf_clear(&sse->data);
    sse->event[0] = 0;
}

void sse_done(struct sse *sse)
{
    buf_done(&sse->line);
    buf_done(&sse->data);
}
