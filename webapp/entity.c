/* SPDX-License-Identifier: MIT */
#include "webapp/entity.h"

#include "webapp/web.h"

#include <ctype.h>

#define LOCATION_LIMIT ((size_t)4096)

static bool is_name(struct sv text, bool lower_only)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        bool letter = lower_only ? islower(c) : isalpha(c);
        if (!letter && !isdigit(c) && (i == 0 || !strchr("._-", c) || c == 0))
            return false;
    }
    return text.len > 0;
}

enum err_code entity_name(const struct request *req, size_t param, const struct entity_rule *rule,
                          char *ret_name, struct err *err)
{
    struct sv text = req->match.params[param];
    if (is_name(text, rule->lower_only) && sv_copy(text, ret_name, rule->size))
        return ERR_OK;
    return err_set(err, ERR_INVALID,
                   "the %s in the path has 1 to %zu %sletters, digits, '.', '_' and '-', and "
                   "begins with a letter or digit",
                   rule->what, rule->size - 1, rule->lower_only ? "lower-case " : "");
}

/* "\"17\"", as reply_tag writes it; a weak one ("W/...") is never equal. */
static bool tag_version(struct sv text, uint32_t *ret_version)
{
    uint64_t version = 0;
    if (text.len < 3 || text.ptr[0] != '"' || text.ptr[text.len - 1] != '"' ||
        !sv_u64((struct sv){text.ptr + 1, text.len - 2}, EXPECT_SOME - 1, &version) || version == 0)
        return false;
    *ret_version = (uint32_t)version;
    return true;
}

enum err_code entity_expect(const struct request *req, uint32_t *ret_expect, struct err *err)
{
    struct sv match = request_header(req, HEADER_IF_MATCH);
    struct sv none = request_header(req, HEADER_IF_NONE_MATCH);
    if (match.ptr && none.ptr)
        return err_set_at(err, ERR_INVALID, "If-None-Match", "it contradicts If-Match");
    if (none.ptr && !sv_is(none, "*"))
        return err_set_at(err, ERR_INVALID, "If-None-Match", "only * is supported");
    if (match.ptr && !sv_is(match, "*"))
        return tag_version(match, ret_expect)
                   ? ERR_OK
                   : err_set_at(err, ERR_INVALID, "If-Match",
                                "it is * or one ETag that a GET has given");
    *ret_expect = none.ptr ? EXPECT_NONE : match.ptr ? EXPECT_SOME : EXPECT_ANY;
    return ERR_OK;
}

enum err_code entity_expect_old(const struct request *req, uint32_t *ret_expect, struct err *err)
{
    enum err_code rc = entity_expect(req, ret_expect, err);
    if (rc == ERR_OK && *ret_expect == EXPECT_NONE)
        rc = err_set_at(err, ERR_INVALID, "If-None-Match", "it makes no sense with DELETE");
    return rc;
}

enum err_code entity_delete(struct request *req, entity_delete_fn *delete_row, const char *name,
                            struct err *err)
{
    uint32_t expect = EXPECT_ANY;
    enum err_code rc = entity_expect_old(req, &expect, err);
    if (rc == ERR_OK)
        rc = delete_row(req->web->store, req->who.tenant, name, expect, err);
    if (rc == ERR_OK)
        reply_empty(req, MHD_HTTP_NO_CONTENT);
    return rc;
}

void reply_tag(struct request *req, uint32_t version)
{
    char tag[16];
    (void)snprintf(tag, sizeof(tag), "\"%u\"", version);
    reply_header(req, "ETag", tag);
}

void reply_location(struct request *req)
{
    BUF_AUTO struct buf path = BUF_INIT(LOCATION_LIMIT);
    buf_add(&path, req->uri.raw, req->uri.path_length);
    if (!path.failed)
        reply_header(req, "Location", buf_text(&path));
}
