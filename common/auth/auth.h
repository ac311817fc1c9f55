/* SPDX-License-Identifier: MIT */
#ifndef COMMON_AUTH_AUTH_H
#define COMMON_AUTH_AUTH_H

/* auth: who sends a request: checks a bearer token (JWT) against the keys of its tenant.
 * A tenant is a folder beneath keys_dir that holds KID.pem (public key: RSA for RS256, EC P-256 for
 * ES256), KID.hs256 (shared secret, only if allowed) and jwks.json. The algorithm is that of the
 * key, never the token's choice. Folders are read into memory and looked at again every few
 * seconds, so that keys come and go without a restart; names in tokens never become paths.
 * Threads: locked. Memory: auth_close() frees; an identity is a copy. */

#include "common/base/base.h"
#include "common/base/err.h"
#include "common/base/sv.h"
#include "common/config/config.h"

#define AUTH_TENANT_SIZE 64 /* 63 characters and NUL */
#define AUTH_USER_SIZE 129
#define AUTH_TOKEN_MAX 8192 /* bytes of a token */

enum role {
#define ROLE(name, text) ROLE_##name,
#include "common/auth/role.def"
#undef ROLE
    ROLE_COUNT
};

struct identity {
    char tenant[AUTH_TENANT_SIZE];
    char user[AUTH_USER_SIZE];
    unsigned roles;    /* bit 1u << role; a stronger role brings the weaker ones along */
    int64_t expires_s; /* of the token, since 1970; auth.leeway_s more are forgiven */
    uint64_t key;      /* that signed it */
};

struct auth_config { /* texts are borrowed until auth_close */
    const char *keys_dir;
    const char *issuer;   /* "": any */
    const char *audience; /* "": any */
    const char *tenant_claim;
    const char *roles_claim;
    unsigned leeway_s;
    unsigned cache_max; /* verified tokens that are remembered */
    bool allow_hs256;
    unsigned rescan_ms;  /* age at which the folders are looked at again */
    unsigned unknown_ms; /* the same when a token names a key that is not known */
};

struct auth; /* opaque: the body is in auth.c */

/* The auth.* settings; cfg must live as long as the result. */
struct auth_config auth_config_of(const struct config *cfg);

/* ERR_CONFIG if keys_dir cannot be read. Later, what cannot be read opens nothing: a key counts
 * while its file is seen to be as it was. Single bad keys are logged and left out. */
MUST_USE enum err_code auth_open(const struct auth_config *cfg, struct auth **ret_auth,
                                 struct err *err);
void auth_close(struct auth *auth); /* NULL is allowed */

/* authorization is the value of the header, "Bearer TOKEN"; an empty view if there was none.
 * Every fault of a token is the same ERR_UNAUTHENTICATED with the same text, but for one that is
 * good in all but its time, which is told; what it was goes to detail (size bytes, for the log
 * only; "" when all is well). */
MUST_USE enum err_code auth_check(struct auth *auth, struct sv authorization,
                                  struct identity *ret_identity, char *detail, size_t size,
                                  struct err *err);

/* Why what was let in would not be now, in words for the client; NULL while it would. For what goes
 * on longer than a request: the token may expire, and its key may be removed. As of the last look
 * at the folders. */
const char *auth_ended(struct auth *auth, const struct identity *identity);
/* Looks at the folders if the last look is some seconds old. It may take a while: hold no lock. */
void auth_look(struct auth *auth);

struct auth_trouble {
    bool all;       /* keys_dir itself cannot be read */
    size_t folders; /* of tenants that cannot, or are too many */
};
/* What of the folders could not be read at the last look. */
struct auth_trouble auth_trouble(struct auth *auth);

/* Looks at the folders now, as a token that is checked does from time to time. */
void auth_rescan(struct auth *auth);
/* Number of tenants; a name (AUTH_TENANT_SIZE bytes) by index, false when there are fewer. */
size_t auth_tenants(struct auth *auth);
MUST_USE bool auth_tenant(struct auth *auth, size_t index, char *ret_name);

bool auth_has_role(const struct identity *identity, enum role role);
const char *role_name(enum role role);
MUST_USE bool role_parse(struct sv text, enum role *ret_role);
/* [a-z0-9][a-z0-9-]{0,62} */
bool auth_tenant_is_valid(struct sv name);

DEFINE_AUTO(struct auth *, auth_close)

#endif
