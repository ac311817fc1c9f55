/* SPDX-License-Identifier: MIT */
#include "common/auth/auth.h"

#include "common/auth/key_store.h"
#include "common/auth/token.h"
#include "common/auth/token_cache.h"
#include "common/base/clock.h"
#include "common/base/openssl.h"

#define RESCAN_MS 3000 /* a key that was taken away stops working within five seconds */
#define UNKNOWN_MS 250

struct auth {
    struct auth_config cfg;
    struct key_store *keys;
    struct token_cache *cache;
};

struct auth_config auth_config_of(const struct config *cfg)
{
    return (struct auth_config){
        .keys_dir = cfg->auth_keys_dir,
        .issuer = cfg->auth_issuer,
        .audience = cfg->auth_audience,
        .tenant_claim = cfg->auth_tenant_claim,
        .roles_claim = cfg->auth_roles_claim,
        .leeway_s = cfg->auth_leeway_s,
        .cache_max = cfg->auth_cache_max,
        .allow_hs256 = cfg->auth_allow_hs256,
        .rescan_ms = RESCAN_MS,
        .unknown_ms = UNKNOWN_MS,
    };
}

enum err_code auth_open(const struct auth_config *cfg, struct auth **ret_auth, struct err *err)
{
    AUTO(auth_close) struct auth *auth = calloc(1, sizeof(*auth));
    if (!auth)
        return err_set(err, ERR_NOMEM, "out of memory for the keys");
    auth->cfg = *cfg;
    enum err_code rc = token_cache_new(cfg->cache_max, &auth->cache, err);
    if (!rc)
        rc = key_store_open(&auth->cfg, &auth->keys, err);
    if (rc)
        return rc;
    *ret_auth = TAKE(auth);
    return ERR_OK;
}

void auth_close(struct auth *auth)
{
    if (!auth)
        return;
    key_store_close(auth->keys);
    token_cache_free(auth->cache);
    free(auth);
}

/* NULL if there is none such; without a kid, the only key that there is. */
static const struct auth_key *pick(const struct tenant_keys *tenant, const json_t *kid)
{
    const struct auth_key *only = NULL;
    size_t count = 0;
    for (size_t i = 0; i < tenant->count; i++) {
        const struct auth_key *key = &tenant->keys[i];
        if (atomic_load(&tenant->gone[i]))
            continue;
        if (kid && strcmp(key->kid, json_string_value(kid)) == 0)
            return key;
        only = key;
        count++;
    }
    return !kid && count == 1 ? only : NULL;
}

struct found_key {
    struct tenant_keys *tenant; /* lent */
    const struct auth_key *key; /* within it */
    uint64_t stamp;             /* before it was picked: it may go meanwhile */
};

static enum err_code find_key(struct auth *auth, const struct token *token,
                              struct found_key *ret_found, struct err *err)
{
    struct sv name;
    enum err_code rc = token_tenant(token, &auth->cfg, &name, err);
    if (rc)
        return rc;
    for (int look = 0; look < 2; look++) {
        if (look > 0) /* perhaps the key is new */
            key_store_refresh(auth->keys, auth->cfg.unknown_ms, true);
        AUTO(tenant_keys_free) struct tenant_keys *tenant = key_store_find(auth->keys, name);
        uint64_t stamp = tenant ? atomic_load(&tenant->stamp) : 0;
        const struct auth_key *key = tenant ? pick(tenant, token->kid) : NULL;
        if (!key)
            continue;
        *ret_found = (struct found_key){.key = key, .stamp = stamp};
        ret_found->tenant = TAKE(tenant);
        return ERR_OK;
    }
    return err_set(err, ERR_UNAUTHENTICATED, "tenant %.*s has no key %.128s", SV_ARG(name),
                   token->kid ? json_string_value(token->kid) : "that goes without saying its kid");
}

/* ret_tell: the token is good but for its time. */
static enum err_code check_token(struct auth *auth, struct sv text, struct identity *ret_identity,
                                 uint64_t *ret_stamp, bool *ret_tell, struct err *err)
{
    TOKEN_AUTO struct token token;
    struct found_key found = {0};
    enum err_code rc = token_parse(text, &token, err);
    if (!rc)
        rc = find_key(auth, &token, &found, err);
    AUTO(tenant_keys_free) struct tenant_keys *tenant = found.tenant;
    if (!rc)
        rc = token_verify(&token, found.key, err);
    if (!rc)
        rc = token_identity(&token, &auth->cfg, ret_identity, err);
    if (rc || !tenant)
        return rc;
    rc = token_times(&token, auth->cfg.leeway_s, &ret_identity->expires_s, ret_tell, err);
    if (rc)
        return rc;
    ret_identity->key = found.key->id;
    *ret_stamp = found.stamp;
    return ERR_OK;
}

static bool is_remembered(struct auth *auth, const unsigned char *digest,
                          struct identity *ret_identity)
{
    struct identity identity;
    uint64_t stamp = 0;
    if (!token_cache_get(auth->cache, digest, &identity, &stamp))
        return false;
    if (clock_wall_s() >= identity.expires_s + auth->cfg.leeway_s)
        return false;
    AUTO(tenant_keys_free)
    struct tenant_keys *tenant = key_store_find(auth->keys, sv_of(identity.tenant));
    if (!tenant || atomic_load(&tenant->stamp) != stamp)
        return false;
    *ret_identity = identity;
    return true;
}

static enum err_code check_header(struct auth *auth, struct sv authorization,
                                  struct identity *ret_identity, bool *ret_tell, struct err *err)
{
    unsigned char digest[TOKEN_DIGEST_SIZE];
    struct sv text;
    uint64_t stamp = 0;
    enum err_code rc = token_of_header(authorization, &text, err);
    if (rc)
        return rc;
    if (text.len > AUTH_TOKEN_MAX)
        return err_set(err, ERR_UNAUTHENTICATED, "the token has %zu bytes, at most %d are allowed",
                       text.len, AUTH_TOKEN_MAX);
    if (!EVP_Digest(text.ptr, text.len, digest, NULL, EVP_sha256(), NULL))
        return err_set(err, ERR_NOMEM, "out of memory for a digest");
    key_store_refresh(auth->keys, auth->cfg.rescan_ms, false);
    if (is_remembered(auth, digest, ret_identity))
        return ERR_OK;
    struct identity identity;
    rc = check_token(auth, text, &identity, &stamp, ret_tell, err);
    if (rc)
        return rc;
    token_cache_put(auth->cache, digest, &identity, stamp);
    *ret_identity = identity;
    return ERR_OK;
}

enum err_code auth_check(struct auth *auth, struct sv authorization, struct identity *ret_identity,
                         char *detail, size_t size, struct err *err)
{
    struct err fault = {0};
    bool tell = false;
    if (size > 0)
        detail[0] = 0;
    if (authorization.len == 0)
        return err_set(err, ERR_UNAUTHENTICATED,
                       "a token is needed in the header \"Authorization: Bearer TOKEN\"");
    enum err_code rc = check_header(auth, authorization, ret_identity, &tell, &fault);
    if (!rc)
        return ERR_OK;
    snprintf(detail, size, "%s", fault.text);
    if (rc == ERR_NOMEM)
        return err_set(err, rc, "out of memory while a token was checked");
    if (tell)
        return err_set(err, rc, "%s", fault.text);
    return err_set(err, ERR_UNAUTHENTICATED,
                   "the token is not valid; the log of the service has the reason under this "
                   "request's id");
}

const char *auth_ended(struct auth *auth, const struct identity *identity)
{
    if (clock_wall_s() >= identity->expires_s + auth->cfg.leeway_s)
        return "the token has expired";
    AUTO(tenant_keys_free)
    struct tenant_keys *tenant = key_store_find(auth->keys, sv_of(identity->tenant));
    for (size_t i = 0; tenant && i < tenant->count; i++) {
        if (tenant->keys[i].id == identity->key && !atomic_load(&tenant->gone[i]))
            return NULL;
    }
    return "the key of the token was removed";
}

void auth_look(struct auth *auth)
{
    key_store_refresh(auth->keys, auth->cfg.rescan_ms, false);
}

struct auth_trouble auth_trouble(struct auth *auth)
{
    return key_store_trouble(auth->keys);
}

void auth_rescan(struct auth *auth)
{
    key_store_refresh(auth->keys, 0, true);
}

size_t auth_tenants(struct auth *auth)
{
    return key_store_count(auth->keys);
}

bool auth_tenant(struct auth *auth, size_t index, char *ret_name)
{
    return key_store_name(auth->keys, index, ret_name);
}
