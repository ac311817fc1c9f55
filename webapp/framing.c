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
    const char *next; /* where the next field begins, or the empty line; NULL: MHD looks itself */
    struct err *err;
};

/* Up to 0.9.76 MHD takes a line that begins with a colon or with NUL for the end of the head, drops
 * what follows NUL in a value, and joins lines: what it read last would be the beginning of another
 * request to us, and a part of this one to a proxy. Later ones refuse such heads. */
#define MHD_LOOKS_ITSELF "0.9.77"

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

/* Whether the field lies where the one before it ended: name, NUL in place of the colon, blanks,
 * value, two NUL in place of CR and LF. */
static bool is_next(struct framing *framing, struct sv name, struct sv value)
{
    if (!framing->next)
        return true;
    if (name.ptr != framing->next || value.ptr <= name.ptr + name.len)
        return false;
    const char *blank = name.ptr + name.len + 1;
    while (blank < value.ptr && (*blank == ' ' || *blank == '\t'))
        blank++;
    framing->next = value.ptr + value.len + 2;
    return blank == value.ptr && value.ptr[value.len] == 0 && value.ptr[value.len + 1] == 0;
}

static enum MHD_Result on_field(void *cls, enum MHD_ValueKind kind, const char *name,
                                size_t name_length, const char *value, size_t value_length)
{
    struct framing *framing = cls;
    struct sv field = {name, name_length};
    struct sv text = {value, value_length};
    (void)kind;
    enum err_code rc = check_field(framing, field, text);
    if (rc == ERR_OK && !is_next(framing, field, text))
        rc = err_set(framing->err, ERR_MALFORMED,
                     "the header's line %.*s does not end as it should, or the one before it",
                     (int)(name_length < 64 ? name_length : 64), name);
    return rc ? MHD_NO : MHD_YES;
}

/* The empty line, and nothing else, ends the head. */
static bool ends_here(const struct framing *framing, const char *end)
{
    return !framing->next ||
           (framing->next + 2 == end && framing->next[0] == 0 && framing->next[1] == 0);
}

/* RFC 9112, 3: method, one blank, target, one blank, version, CR LF. MHD ends each with NUL in its
 * place, and finds the next one however far it is: a NUL that was sent, or a second blank, leaves a
 * gap. What stands in it is the target's to a proxy, and nothing to us. */
static enum err_code check_line(const struct request_line *line, bool with_places, struct err *err)
{
    if (!is_name(sv_of(line->method)))
        return err_set(err, ERR_MALFORMED, "the method holds what no method may hold");
    struct sv raw = sv_of(line->raw);
    if (has_control(raw) ||
        (raw.len > 0 && (memchr(raw.ptr, ' ', raw.len) || memchr(raw.ptr, '\t', raw.len))))
        return err_set(err, ERR_MALFORMED,
                       "the target of the request holds a blank or a control character");
    if (!with_places || !raw.ptr)
        return ERR_OK;
    if (line->target != line->method + strlen(line->method) + 1 ||
        line->version != line->target + raw.len + 1)
        return err_set(err, ERR_MALFORMED,
                       "the request line is not a method, a target and a version with one blank "
                       "between them");
    return ERR_OK;
}

enum err_code framing_check(struct MHD_Connection *mhd, const struct request_line *line,
                            struct err *err)
{
    const char *version = line->version;
    struct framing framing = {.err = err};
    const union MHD_ConnectionInfo *head =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    if (head && strverscmp(MHD_get_version(), MHD_LOOKS_ITSELF) < 0)
        framing.next = version + strlen(version) + 2;
    if (check_line(line, framing.next != NULL, err) != ERR_OK)
        return err->code;
    (void)MHD_get_connection_values_n(mhd, MHD_HEADER_KIND, on_field, &framing);
    if (err->code)
        return err->code;
    if (!ends_here(&framing, line->method + (head ? head->header_size : 0)))
        return err_set(err, ERR_MALFORMED, "the header does not end with an empty line");
    if (!framing.seen[HOST] && strcmp(version, "HTTP/1.0") != 0)
        return err_set(err, ERR_MALFORMED, "there is no Host");
    if (framing.seen[LENGTH] && framing.seen[ENCODING])
        return err_set(err, ERR_MALFORMED, "there is a Content-Length and a Transfer-Encoding");
    return ERR_OK;
}
