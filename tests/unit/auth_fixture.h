/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_AUTH_FIXTURE_H
#define TESTS_UNIT_AUTH_FIXTURE_H

/* auth_fixture: folders with keys of two tenants, a clock that stands still until it is told to
 * move, and tokens. Tenant acme has the keys rsa1 and ec1, tenant beta has ec2.
 * Threads: owner, but for the clock. Longer than 150 lines: each test needs all of it. */

#include "tests/support/test.h"

#include "common/auth/auth.h"
#include "common/auth/auth_sign.h"
#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/log.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOW_S INT64_C(1800000000)

struct fixture {
    char root[64];
    char keys_dir[96];
    char private_dir[96];
    struct auth_private_key rsa1;
    struct auth_private_key ec1;
    struct auth_private_key ec2;
    struct auth_config cfg;
};

static struct fixture fx;
static atomic_llong clock_s = NOW_S;

static inline int64_t fixture_clock_us(void)
{
    return (int64_t)atomic_load(&clock_s) * 1000000;
}

static inline void fixture_make(const char *tenant, const char *kid, enum auth_alg alg,
                                struct auth_private_key *ret_key)
{
    struct err err = {0};
    char path[AUTH_PATH_SIZE];
    const struct auth_new_key wanted = {fx.keys_dir, fx.private_dir, tenant, kid, alg};
    assert_ok(auth_make_key(&wanted, path, &err));
    assert_ok(auth_key_read(path, ret_key, &err));
    assert_int_equal(ret_key->alg, alg);
}

static inline void fixture_write(const char *tenant, const char *file, struct sv bytes, mode_t mode)
{
    struct err err = {0};
    FD_AUTO int keys_fd = -1;
    FD_AUTO int fd = -1;
    assert_ok(fs_open_dir(fx.keys_dir, false, &keys_fd, &err));
    assert_ok(fs_make_dirs(keys_fd, tenant, 0755, &fd, &err));
    assert_ok(fs_write_sync(fd, file, bytes, mode, &err));
    assert_int_equal(fchmodat(fd, file, mode, 0), 0);
}

static inline void fixture_remove(const char *file)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", fx.keys_dir, file);
    assert_int_equal(unlink(path), 0);
}

static inline int fixture_start(void **unused)
{
    (void)unused;
    log_open("test", STDOUT_FILENO, LOG_ERROR);
    clock_replace(fixture_clock_us, fixture_clock_us);
    snprintf(fx.root, sizeof(fx.root), "/tmp/test_auth.XXXXXX");
    if (!mkdtemp(fx.root))
        return 1;
    snprintf(fx.keys_dir, sizeof(fx.keys_dir), "%s/keys", fx.root);
    snprintf(fx.private_dir, sizeof(fx.private_dir), "%s/private", fx.root);
    fixture_make("acme", "rsa1", AUTH_RS256, &fx.rsa1);
    fixture_make("acme", "ec1", AUTH_ES256, &fx.ec1);
    fixture_make("beta", "ec2", AUTH_ES256, &fx.ec2);
    fx.cfg = (struct auth_config){.keys_dir = fx.keys_dir,
                                  .issuer = "",
                                  .audience = "",
                                  .tenant_claim = "tenant",
                                  .roles_claim = "roles",
                                  .leeway_s = 30,
                                  .cache_max = 64,
                                  .rescan_ms = 3000,
                                  .unknown_ms = 250};
    return 0;
}

static inline int fixture_stop(void **unused)
{
    (void)unused;
    struct err err = {0};
    FD_AUTO int fd = -1;
    auth_key_done(&fx.rsa1);
    auth_key_done(&fx.ec1);
    auth_key_done(&fx.ec2);
    if (fs_open_dir("/tmp", false, &fd, &err) != ERR_OK)
        return 1;
    return fs_remove_tree(fd, fx.root + strlen("/tmp/"), &err) == ERR_OK ? 0 : 1;
}

static inline void fixture_wait_s(int seconds)
{
    atomic_fetch_add(&clock_s, seconds);
}

static inline char *fixture_token(const struct auth_private_key *key, const char *kid,
                                  const char *tenant, int lifetime_s)
{
    struct err err = {0};
    char *token = NULL;
    const struct auth_claims claims = {.tenant = tenant,
                                       .user = "alice",
                                       .roles = "user",
                                       .tenant_claim = "tenant",
                                       .roles_claim = "roles",
                                       .lifetime_s = lifetime_s};
    assert_ok(auth_sign(key, kid, &claims, &token, &err));
    return token;
}

/* Checks "Bearer token"; detail has 200 bytes. */
static inline enum err_code fixture_check(struct auth *auth, const char *token,
                                          struct identity *ret_identity, char *detail)
{
    struct err err = {0};
    BUF_AUTO struct buf header = BUF_INIT(200000);
    buf_addf(&header, "Bearer %s", token);
    enum err_code rc = auth_check(auth, buf_sv(&header), ret_identity, detail, 200, &err);
    if (rc && !strstr(err.text, "the token expired ") &&
        !strstr(err.text, "the token is valid from "))
        assert_string_equal(err.text, "the token is not valid; the log of the service has the "
                                      "reason under this request's id");
    return rc;
}

static inline void assert_accepted(struct auth *auth, const char *token)
{
    struct identity identity = {.roles = 0};
    char detail[200] = "";
    if (fixture_check(auth, token, &identity, detail) != ERR_OK)
        fail_msg("refused: %s", detail);
    assert_string_equal(detail, "");
    assert_string_equal(identity.user, "alice");
}

/* part is in what the log is told. */
static inline void assert_refused(struct auth *auth, const char *token, const char *part)
{
    struct identity identity = {.roles = 0};
    char detail[200] = "";
    if (fixture_check(auth, token, &identity, detail) != ERR_UNAUTHENTICATED)
        fail_msg("accepted, but %s", part);
    if (!strstr(detail, part))
        fail_msg("\"%s\" is not in \"%s\"", part, detail);
    assert_string_equal(identity.user, "");
}

#endif
