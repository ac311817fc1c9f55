/* SPDX-License-Identifier: MIT */
#include "webapp/entity.h"

#include <ctype.h>

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
        !sv_u64((struct sv){text.ptr + 1, text.len - 2}, UINT32_MAX - 1, &version) || version == 0)
        return false;
    *ret_version = (uint32_t)version;
    return true;
}

enum err_code entity_condition(const struct request *req, struct entity_condition *ret_condition,
                               struct err *err)
{
    struct sv match = request_header(req, HEADER_IF_MATCH);
    struct sv none = request_header(req, HEADER_IF_NONE_MATCH);
    *ret_condition = (struct entity_condition){0};
    if (match.ptr && none.ptr)
        return err_set_at(err, ERR_INVALID, "If-None-Match", "it contradicts If-Match");
    if (none.ptr) {
        ret_condition->expect_version = UINT32_MAX;
        if (!sv_is(none, "*"))
            return err_set_at(err, ERR_INVALID, "If-None-Match", "only * is supported");
    } else if (match.ptr && sv_is(match, "*")) {
        ret_condition->must_exist = true;
    } else if (match.ptr && !tag_version(match, &ret_condition->expect_version)) {
        return err_set_at(err, ERR_INVALID, "If-Match", "it is * or one ETag that a GET has given");
    }
    return ERR_OK;
}

enum err_code entity_condition_of_delete(const struct request *req,
                                         struct entity_condition *ret_condition, struct err *err)
{
    enum err_code rc = entity_condition(req, ret_condition, err);
    if (rc == ERR_OK && ret_condition->expect_version == UINT32_MAX)
        rc = err_set_at(err, ERR_INVALID, "If-None-Match", "it makes no sense with DELETE");
    return rc;
}

void reply_tag(struct request *req, uint32_t version)
{
    char tag[16];
    (void)snprintf(tag, sizeof(tag), "\"%u\"", version);
    reply_header(req, "ETag", tag);
}
