/* SPDX-License-Identifier: MIT */
#include "webapp/framing.h"

#include "common/base/sv.h"

#include <ctype.h>
#include <strings.h>

enum single { LENGTH, ENCODING, HOST, AUTHORIZATION, SINGLE_COUNT };

static const char *const singles[SINGLE_COUNT] = {
    [LENGTH] = "Content-Length",
    [ENCODING] = "Transfer-Encoding",
    [HOST] = "Host",
    [AUTHORIZATION] = "Authorization",
};

struct framing {
    bool seen[SINGLE_COUNT];
    struct err *err;
};

static bool is_name(struct sv text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (!isalnum((unsigned char)text.ptr[i]) &&
            !memchr("!#$%&'*+-.^_`|~", text.ptr[i], sizeof("!#$%&'*+-.^_`|~") - 1))
            return false;
    }
    return text.len > 0;
}

static bool has_control(struct sv text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.ptr[i];
        if ((byte < 0x20 && byte != '\t') || byte == 0x7F)
            return true;
    }
    return false;
}

static enum err_code check_field(struct framing *framing, struct sv name, struct sv value)
{
    struct err *err = framing->err;
    if (!is_name(name))
        return err_set(err, ERR_MALFORMED, "a header's name holds what no name may hold");
    if (has_control(value))
        return err_set(err, ERR_MALFORMED, "the header %.*s holds a control character",
                       (int)(name.len < 64 ? name.len : 64), name.ptr);
    for (size_t i = 0; i < SINGLE_COUNT; i++) {
        if (name.len != strlen(singles[i]) || strncasecmp(name.ptr, singles[i], name.len) != 0)
            continue;
        if (framing->seen[i])
            return err_set(err, ERR_MALFORMED, "there is more than one %s", singles[i]);
        framing->seen[i] = true;
        if (i == ENCODING && (value.len != 7 || strncasecmp(value.ptr, "chunked", 7) != 0))
            return err_set(err, ERR_MALFORMED, "the only Transfer-Encoding is chunked");
    }
    return ERR_OK;
}

static enum MHD_Result on_field(void *cls, enum MHD_ValueKind kind, const char *name,
                                size_t name_length, const char *value, size_t value_length)
{
    (void)kind;
    enum err_code rc =
        check_field(cls, (struct sv){name, name_length}, (struct sv){value, value_length});
    return rc ? MHD_NO : MHD_YES;
}

enum err_code framing_check(struct MHD_Connection *mhd, struct err *err)
{
    struct framing framing = {.err = err};
    (void)MHD_get_connection_values_n(mhd, MHD_HEADER_KIND, on_field, &framing);
    if (err->code)
        return err->code;
    if (framing.seen[LENGTH] && framing.seen[ENCODING])
        return err_set(err, ERR_MALFORMED, "there is a Content-Length and a Transfer-Encoding");
    return ERR_OK;
}
