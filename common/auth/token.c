/* SPDX-License-Identifier: MIT */
#include "common/auth/token.h"

#include "common/auth/base64url.h"
#include "common/auth/signature.h"
#include "common/base/clock.h"

#include <inttypes.h>
#include <strings.h>

#define SPAN_SIZE 32
#define HEADER_MAX 2048                  /* bytes of a header, decoded */
#define TIME_MAX_S INT64_C(253402300799) /* the end of the year 9999 */

enum err_code token_of_header(struct sv authorization, struct sv *ret_token, struct err *err)
{
    static const char scheme[] = "Bearer ";
    struct sv rest = authorization;
    if (rest.len < strlen(scheme) || strncasecmp(rest.ptr, scheme, strlen(scheme)) != 0)
        return err_set(err, ERR_UNAUTHENTICATED, "the header does not begin with Bearer");
    rest = (struct sv){rest.ptr + strlen(scheme), rest.len - strlen(scheme)};
    while (rest.len > 0 && rest.ptr[0] == ' ')
        rest = (struct sv){rest.ptr + 1, rest.len - 1};
    while (rest.len > 0 && rest.ptr[rest.len - 1] == ' ')
        rest.len--;
    *ret_token = rest;
    return ERR_OK;
}

/* One part of the token as a JSON object. */
static enum err_code parse_part(struct sv part, size_t limit, const char *what, json_t **ret_json,
                                struct err *err)
{
    BUF_AUTO struct buf bytes = BUF_INIT(limit);
    json_error_t fault;
    bool good = base64url_decode(part, &bytes);
    if (bytes.starved)
        return err_set(err, ERR_NOMEM, "out of memory for a token");
    if (!good)
        return err_set(err, ERR_UNAUTHENTICATED, "the %s is not base64url of at most %zu bytes",
                       what, limit);
    JSON_AUTO json_t *json =
        json_loadb(buf_text(&bytes), bytes.len, JSON_REJECT_DUPLICATES, &fault);
    if (!json_is_object(json))
        return err_set(err, ERR_UNAUTHENTICATED, "the %s is not a JSON object: %.100s", what,
                       json ? "another type" : fault.text);
    *ret_json = TAKE(json);
    return ERR_OK;
}

/* RFC 9068 for tokens of OAuth; many portals say JWT. What is signed as another type is meant for
 * something else: a logout, a proof of possession, an event. */
static bool is_access_type(const char *typ)
{
    static const char media[] = "application/"; /* may be left out (RFC 7515, 4.1.9) */
    if (strncasecmp(typ, media, strlen(media)) == 0)
        typ += strlen(media);
    return strcasecmp(typ, "JWT") == 0 || strcasecmp(typ, "at+jwt") == 0;
}

static enum err_code read_header(struct token *token, struct err *err)
{
    const json_t *alg = json_object_get(token->header, "alg");
    const json_t *typ = json_object_get(token->header, "typ");
    token->kid = json_object_get(token->header, "kid");
    if (json_object_get(token->header, "crit"))
        return err_set(err, ERR_UNAUTHENTICATED, "the header has crit, none of which is known");
    if (typ && !json_is_string(typ))
        return err_set(err, ERR_UNAUTHENTICATED, "typ is not a text");
    if (typ && !is_access_type(json_string_value(typ)))
        return err_set(err, ERR_UNAUTHENTICATED, "typ is %.32s, and not JWT or at+jwt",
                       json_string_value(typ));
    if (token->kid &&
        (!json_is_string(token->kid) || json_string_length(token->kid) >= AUTH_KID_SIZE))
        return err_set(err, ERR_UNAUTHENTICATED, "kid is not a text of at most %d bytes",
                       AUTH_KID_SIZE - 1);
    if (!json_is_string(alg) || !auth_alg_parse(sv_of(json_string_value(alg)), &token->alg))
        return err_set(err, ERR_UNAUTHENTICATED, "alg %.32s is not supported",
                       json_is_string(alg) ? json_string_value(alg) : "(no text)");
    return ERR_OK;
}

enum err_code token_parse(struct sv text, struct token *ret_token, struct err *err)
{
    *ret_token = (struct token){.claims = NULL};
    if (!sv_copy(text, ret_token->text, sizeof(ret_token->text)))
        return err_set(err, ERR_UNAUTHENTICATED, "the token has %zu bytes, at most %d are allowed",
                       text.len, AUTH_TOKEN_MAX);
    const char *first = memchr(text.ptr, '.', text.len);
    const char *last = memrchr(text.ptr, '.', text.len);
    if (!first || first == last || memchr(first + 1, '.', (size_t)(last - first - 1)))
        return err_set(err, ERR_UNAUTHENTICATED, "the token does not have three parts");
    struct sv header = {text.ptr, (size_t)(first - text.ptr)};
    struct sv claims = {first + 1, (size_t)(last - first - 1)};
    struct sv signature = {last + 1, (size_t)(text.ptr + text.len - last - 1)};
    BUF_AUTO struct buf bytes = BUF_INIT(AUTH_TOKEN_MAX);
    bool good = base64url_decode(signature, &bytes);
    if (bytes.starved)
        return err_set(err, ERR_NOMEM, "out of memory for a token");
    if (!good || bytes.len == 0)
        return err_set(err, ERR_UNAUTHENTICATED, "the signature is not base64url");
    enum err_code rc = parse_part(header, HEADER_MAX, "header", &ret_token->header, err);
    if (!rc)
        rc = read_header(ret_token, err);
    if (!rc)
        rc = parse_part(claims, AUTH_TOKEN_MAX, "payload", &ret_token->claims, err);
    return rc;
}

void token_done(struct token *token)
{
    json_decref(token->header);
    json_decref(token->claims);
    *token = (struct token){.claims = NULL};
}

enum err_code token_verify(const struct token *token, const struct auth_key *key, struct err *err)
{
    BUF_AUTO struct buf signature = BUF_INIT(AUTH_TOKEN_MAX);
    const char *dot = strrchr(token->text, '.');
    if (token->alg != key->alg)
        return err_set(err, ERR_UNAUTHENTICATED, "alg %s, but key %s is for %s",
                       auth_alg_name(token->alg), key->kid, auth_alg_name(key->alg));
    bool good = dot && base64url_decode(sv_of(dot + 1), &signature);
    if (signature.starved)
        return err_set(err, ERR_NOMEM, "out of memory for a token");
    if (!good) /* token_parse() has seen to it */
        return err_set(err, ERR_UNAUTHENTICATED, "the signature is not base64url");
    return signature_check(key, (struct sv){token->text, (size_t)(dot - token->text)},
                           buf_sv(&signature), err);
}

static enum err_code read_text(const struct token *token, const char *claim, size_t size,
                               char *ret_text, struct err *err)
{
    const json_t *value = json_object_get(token->claims, claim);
    struct sv text = {json_string_value(value), json_string_length(value)};
    if (!value)
        return err_set(err, ERR_UNAUTHENTICATED, "claim %s is missing", claim);
    if (!text.ptr || text.len == 0 || !sv_copy(text, ret_text, size))
        return err_set(err, ERR_UNAUTHENTICATED, "claim %s is not a text of 1 to %zu bytes", claim,
                       size - 1);
    for (const char *c = ret_text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return err_set(err, ERR_UNAUTHENTICATED, "claim %s has a control character", claim);
    return ERR_OK;
}

enum err_code token_tenant(const struct token *token, const struct auth_config *cfg,
                           struct sv *ret_tenant, struct err *err)
{
    const json_t *value = json_object_get(token->claims, cfg->tenant_claim);
    struct sv text = {json_string_value(value), json_string_length(value)};
    if (!text.ptr || !auth_tenant_is_valid(text))
        return err_set(err, ERR_UNAUTHENTICATED, "claim %s is missing or not the name of a tenant",
                       cfg->tenant_claim);
    *ret_tenant = text;
    return ERR_OK;
}

/* A time in seconds; fractions are cut. ERR_NOT_FOUND if the claim is missing. */
static enum err_code read_time(const struct token *token, const char *claim, int64_t *ret_s,
                               struct err *err)
{
    const json_t *value = json_object_get(token->claims, claim);
    if (!value)
        return ERR_NOT_FOUND;
    double seconds = json_number_value(value);
    if (!json_is_number(value) || !(seconds >= 0 && seconds <= (double)TIME_MAX_S))
        return err_set(err, ERR_UNAUTHENTICATED, "claim %s is not a time in seconds", claim);
    *ret_s = json_is_integer(value) ? json_integer_value(value) : (int64_t)seconds;
    return ERR_OK;
}

/* "90 s", "60 min", "5 h", "12 d" */
static const char *span_text(int64_t seconds, char *ret_text)
{
    static const struct {
        const char *unit;
        int64_t seconds;
    } units[] = {{"d", 86400}, {"h", 3600}, {"min", 60}};
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (seconds < 2 * units[i].seconds)
            continue;
        (void)snprintf(ret_text, SPAN_SIZE, "%" PRId64 " %s", seconds / units[i].seconds,
                       units[i].unit);
        return ret_text;
    }
    (void)snprintf(ret_text, SPAN_SIZE, "%" PRId64 " s", seconds);
    return ret_text;
}

static enum err_code too_early(const char *claim, int64_t at, int64_t now, struct err *err)
{
    char when[CLOCK_TEXT_SIZE];
    char span[SPAN_SIZE];
    clock_rfc3339(at * 1000000, when);
    return err_set(err, ERR_UNAUTHENTICATED,
                   "the token is valid from %s on (%s), which is in %s by this service's clock: "
                   "compare the clocks of its issuer and of sluice-web, or wait",
                   when, claim, span_text(at - now, span));
}

enum err_code token_times(const struct token *token, unsigned leeway_s, int64_t *ret_expires_s,
                          bool *ret_tell, struct err *err)
{
    char span[SPAN_SIZE];
    int64_t now = clock_wall_s();
    int64_t at = 0;
    enum err_code rc = read_time(token, "exp", &at, err);
    if (rc)
        return rc == ERR_NOT_FOUND ? err_set(err, ERR_UNAUTHENTICATED, "claim exp is missing") : rc;
    *ret_tell = now >= at + leeway_s;
    if (*ret_tell)
        return err_set(err, ERR_UNAUTHENTICATED, "the token expired %s ago: get a new one",
                       span_text(now - at, span));
    *ret_expires_s = at;
    static const char *const beginnings[] = {"nbf", "iat"};
    for (size_t i = 0; i < ARRAY_LEN(beginnings); i++) {
        rc = read_time(token, beginnings[i], &at, err);
        if (rc == ERR_NOT_FOUND)
            continue;
        if (rc)
            return rc;
        *ret_tell = now + leeway_s < at;
        if (*ret_tell)
            return too_early(beginnings[i], at, now, err);
    }
    return ERR_OK;
}

static bool has_text(const json_t *value, const char *wanted)
{
    return json_is_string(value) && json_string_length(value) == strlen(wanted) &&
           strcmp(json_string_value(value), wanted) == 0;
}

static enum err_code check_origin(const struct token *token, const struct auth_config *cfg,
                                  struct err *err)
{
    const json_t *audience = json_object_get(token->claims, "aud");
    if (cfg->issuer[0] && !has_text(json_object_get(token->claims, "iss"), cfg->issuer))
        return err_set(err, ERR_UNAUTHENTICATED, "claim iss is not %.100s", cfg->issuer);
    if (!cfg->audience[0] || has_text(audience, cfg->audience))
        return ERR_OK;
    for (size_t i = 0; i < json_array_size(audience); i++)
        if (has_text(json_array_get(audience, i), cfg->audience))
            return ERR_OK;
    return err_set(err, ERR_UNAUTHENTICATED, "claim aud is not %.100s", cfg->audience);
}

/* A role that we do not know belongs to somebody else. */
static unsigned role_of(struct sv name)
{
    enum role role;
    return role_parse(name, &role) ? (2u << role) - 1 : 0; /* it and all weaker ones */
}

/* A text holds roles separated by spaces, as a scope does (RFC 6749, 3.3). An element of a list is
 * one role: "billing admin" is a role of its own, and no administrator. */
static unsigned roles_of(const json_t *value)
{
    const char *text = json_string_value(value);
    unsigned roles = 0;
    while (text && *text) {
        size_t length = strcspn(text, " ");
        roles |= role_of((struct sv){text, length});
        text += length + (text[length] == ' ');
    }
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *item = json_array_get(value, i);
        if (json_is_string(item))
            roles |= role_of((struct sv){json_string_value(item), json_string_length(item)});
    }
    return roles;
}

/* The database compares texts without the blanks at their end, and keeps the whole tenant's quota
 * under "*": neither may be somebody's name. */
static enum err_code check_user(const char *user, struct err *err)
{
    struct sv name = sv_of(user);
    if (strcmp(user, "*") == 0)
        return err_set(err, ERR_UNAUTHENTICATED, "claim sub is *, which is nobody's name");
    if (sv_has_blank_end(name))
        return err_set(err, ERR_UNAUTHENTICATED, "claim sub begins or ends with a blank");
    return ERR_OK;
}

enum err_code token_identity(const struct token *token, const struct auth_config *cfg,
                             struct identity *ret_identity, struct err *err)
{
    struct identity identity = {.roles = 0};
    enum err_code rc = check_origin(token, cfg, err);
    if (!rc)
        rc = read_text(token, "sub", sizeof(identity.user), identity.user, err);
    if (!rc)
        rc = check_user(identity.user, err);
    if (!rc)
        rc = read_text(token, cfg->tenant_claim, sizeof(identity.tenant), identity.tenant, err);
    if (rc)
        return rc;
    identity.roles = roles_of(json_object_get(token->claims, cfg->roles_claim));
    *ret_identity = identity;
    return ERR_OK;
}
