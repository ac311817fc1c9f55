/* SPDX-License-Identifier: MIT */
#include "webapp/uri.h"

#include <ctype.h>
#include <strings.h>

/* Decodes text to *at and moves *at behind it. */
static bool decode(struct sv text, bool plus_is_blank, char **at, struct sv *ret_view)
{
    char *start = *at;
    char *out = start;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '%') {
            if (text.len - i < 3)
                return false;
            int high = sv_hex(text.ptr[i + 1]);
            int low = sv_hex(text.ptr[i + 2]);
            if (high < 0 || low < 0 || high + low == 0) /* %00 is refused as well */
                return false;
            c = (char)(high * 16 + low);
            i += 2;
        } else if (c == '+' && plus_is_blank) {
            c = ' ';
        }
        *out++ = c;
    }
    *at = out;
    *ret_view = (struct sv){start, (size_t)(out - start)};
    return sv_is_utf8(text);
}

/* The part of *rest before the separator; *rest is what comes behind it. */
static struct sv cut(struct sv *rest, char separator)
{
    const char *end = rest->len ? memchr(rest->ptr, separator, rest->len) : NULL;
    struct sv part = *rest;
    if (!end) {
        *rest = (struct sv){rest->ptr + rest->len, 0};
        return part;
    }
    part.len = (size_t)(end - rest->ptr);
    *rest = (struct sv){end + 1, rest->len - part.len - 1};
    return part;
}

static enum err_code parse_path(struct uri *uri, struct sv path, char **at, struct err *err)
{
    if (path.len == 0 || path.ptr[0] != '/')
        return err_set(err, ERR_MALFORMED, "the path does not begin with '/'");
    struct sv rest = {path.ptr + 1, path.len - 1};
    bool last = false;
    uri->path_is_text = true;
    while (!last) {
        if (uri->segment_count == URI_SEGMENTS_MAX)
            return err_set(err, ERR_MALFORMED, "the path has more than %d parts", URI_SEGMENTS_MAX);
        last = !rest.len || !memchr(rest.ptr, '/', rest.len);
        struct sv part = cut(&rest, '/');
        struct sv *segment = &uri->segments[uri->segment_count++];
        if (!decode(part, false, at, segment))
            return err_set(err, ERR_MALFORMED, "the path holds a broken escape or is not UTF-8");
        uri->path_is_text = uri->path_is_text && sv_is_utf8(*segment);
    }
    return ERR_OK;
}

static enum err_code parse_query(struct uri *uri, struct sv query, char **at, struct err *err)
{
    while (query.len > 0) {
        struct sv value = cut(&query, '&');
        if (value.len == 0)
            continue;
        if (uri->query_count == URI_QUERY_MAX)
            return err_set(err, ERR_MALFORMED, "more than %d query parameters", URI_QUERY_MAX);
        struct uri_param *param = &uri->query[uri->query_count++];
        struct sv name = cut(&value, '=');
        if (!decode(name, true, at, &param->name) || !decode(value, true, at, &param->value) ||
            !sv_is_utf8(param->name) || !sv_is_utf8(param->value))
            return err_set(err, ERR_MALFORMED, "the query holds a broken escape or is not UTF-8");
    }
    return ERR_OK;
}

/* "http://host/path" is as good as "/path" (RFC 9112, 3.2.2). */
static const char *origin_form(const char *raw)
{
    static const char *const schemes[] = {"http://", "https://"};
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        size_t length = strlen(schemes[i]);
        if (strncasecmp(raw, schemes[i], length) == 0)
            return raw + length + strcspn(raw + length, "/?");
    }
    return raw;
}

enum err_code uri_parse(const char *raw, struct uri *ret_uri, struct err *err)
{
    struct uri *uri = ret_uri;
    *uri = (struct uri){.sent = strdup(raw), .block = malloc(strlen(raw) + 1)};
    if (!uri->sent || !uri->block)
        return err_set(err, ERR_NOMEM, "out of memory");
    uri->raw = origin_form(uri->sent);
    size_t length = strlen(uri->raw);
    const char *mark = strchr(uri->raw, '?');
    char *at = uri->block;
    for (const char *byte = uri->raw; *byte; byte++) {
        if ((unsigned char)*byte <= ' ' || *byte == 0x7F)
            return err_set(err, ERR_MALFORMED, "the path or query holds a blank or a control");
    }
    uri->path_length = mark ? (size_t)(mark - uri->raw) : length;
    enum err_code rc = parse_path(uri, (struct sv){uri->raw, uri->path_length}, &at, err);
    if (rc == ERR_OK && mark)
        rc = parse_query(uri, sv_of(uri->raw + uri->path_length + 1), &at, err);
    return rc;
}

void uri_done(struct uri *uri)
{
    free(uri->sent);
    free(uri->block);
    *uri = (struct uri){0};
}

void uri_encode(struct sv path, struct buf *ret_text)
{
    static const char plain[] = "/-._~";
    for (size_t i = 0; i < path.len; i++) {
        unsigned char c = (unsigned char)path.ptr[i];
        if (isalnum(c) || (c && strchr(plain, c)))
            buf_add(ret_text, &path.ptr[i], 1);
        else
            buf_addf(ret_text, "%%%02X", c);
    }
}

bool uri_query_at(const struct uri *uri, const char *name, size_t n, struct sv *ret_value)
{
    for (size_t i = 0; i < uri->query_count; i++) {
        if (!sv_is(uri->query[i].name, name) || n-- > 0)
            continue;
        *ret_value = uri->query[i].value;
        return true;
    }
    return false;
}

bool uri_query(const struct uri *uri, const char *name, struct sv *ret_value)
{
    return uri_query_at(uri, name, 0, ret_value);
}
