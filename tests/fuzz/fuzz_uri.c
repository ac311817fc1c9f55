/* SPDX-License-Identifier: MIT */
#include "webapp/uri.h"

#include "tests/fuzz/fuzz.h"

/* Input: the target of a request. What is taken holds no NUL, its query is UTF-8, and a path that
 * is written again is read as the same one. */

static void check_encoded(const struct uri *uri)
{
    BUF_AUTO struct buf text = BUF_INIT((size_t)1 << 20);
    struct uri again;
    struct err err = {0};
    for (size_t i = 0; i < uri->segment_count; i++) {
        buf_add_text(&text, "/");
        /* A segment may hold %2F, which uri_encode would take for a separator. */
        if (memchr(uri->segments[i].ptr, '/', uri->segments[i].len))
            return;
        uri_encode(uri->segments[i], &text);
    }
    MUST(!text.failed && uri_parse(buf_text(&text), &again, &err) == ERR_OK);
    MUST(again.segment_count == uri->segment_count);
    for (size_t i = 0; i < uri->segment_count; i++)
        MUST(sv_eq(again.segments[i], uri->segments[i]));
    uri_done(&again);
}

static void check(const struct uri *uri)
{
    MUST(uri->segment_count >= 1 && uri->segment_count <= URI_SEGMENTS_MAX);
    MUST(uri->query_count <= URI_QUERY_MAX);
    for (size_t i = 0; i < uri->segment_count; i++)
        MUST(uri->segments[i].len == 0 || !memchr(uri->segments[i].ptr, 0, uri->segments[i].len));
    for (size_t i = 0; i < uri->query_count; i++) {
        const struct uri_param *param = &uri->query[i];
        MUST(sv_is_utf8(param->name) && sv_is_utf8(param->value));
        MUST(param->value.len == 0 || !memchr(param->value.ptr, 0, param->value.len));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    BUF_AUTO struct buf raw = BUF_INIT(size + 2);
    struct uri uri;
    struct err err = {0};
    struct sv value;
    buf_add(&raw, bytes, size);
    if (uri_parse(buf_text(&raw), &uri, &err) == ERR_OK) {
        check(&uri);
        check_encoded(&uri);
        for (size_t n = 0; uri_query_at(&uri, "status", n, &value); n++)
            MUST(n < URI_QUERY_MAX);
    } else {
        MUST(err.code == ERR_MALFORMED && err.text[0]);
    }
    uri_done(&uri);
    return 0;
}
