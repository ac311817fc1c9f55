/* SPDX-License-Identifier: MIT */
#include "common/auth/base64url.h"
#include "common/auth/token.h"
#include "common/base/buf.h"
#include "tests/fuzz/fuzz.h"

/* Input: a token; or, with a line feed in it, header and claims in plain text, one after the
 * other, which are encoded here. Nothing that it says may crash us, no identity may break its
 * limits, and no signature may be right by chance. */

static const char secret[] = "0123456789abcdef0123456789abcdef";

/* The token that the input means. */
static bool compose(struct sv input, struct buf *token)
{
    const char *line = input.len > 0 ? memchr(input.ptr, '\n', input.len) : NULL;
    if (!line)
        return buf_add_sv(token, input);
    size_t header = (size_t)(line - input.ptr);
    return base64url_encode((struct sv){input.ptr, header}, token) && buf_add_text(token, ".") &&
           base64url_encode((struct sv){line + 1, input.len - header - 1}, token) &&
           buf_add_text(token, ".AAAA");
}

static void check_identity(const struct token *token, const struct auth_config *cfg)
{
    struct err err = {0};
    struct identity identity;
    struct sv tenant;
    if (token_tenant(token, cfg, &tenant, &err) != ERR_OK)
        return;
    if (token_identity(token, cfg, &identity, &err) != ERR_OK)
        return;
    MUST(sv_is(tenant, identity.tenant) && auth_tenant_is_valid(tenant));
    MUST(identity.user[0] && memchr(identity.user, 0, sizeof(identity.user)));
    MUST(identity.roles < 1u << ROLE_COUNT && (identity.roles & (identity.roles + 1)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const struct auth_config cfg = {
        .issuer = "", .audience = "", .tenant_claim = "tenant", .roles_claim = "roles"};
    BUF_AUTO struct buf text = BUF_INIT(4 * AUTH_TOKEN_MAX);
    TOKEN_AUTO struct token token = {.claims = NULL};
    struct auth_key key = {.kid = "k", .alg = AUTH_HS256};
    struct err err = {0};
    BUF_AUTO struct buf copy = BUF_INIT(sizeof(secret));
    if (!compose((struct sv){(const char *)bytes, size}, &text) || !buf_add_text(&copy, secret) ||
        token_parse(buf_sv(&text), &token, &err) != ERR_OK)
        return 0;
    key.bytes = (unsigned char *)copy.ptr;
    key.size = copy.len;
    MUST(token_verify(&token, &key, &err) == ERR_UNAUTHENTICATED);
    check_identity(&token, &cfg);
    return 0;
}
