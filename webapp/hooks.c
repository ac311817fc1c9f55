/* SPDX-License-Identifier: MIT */
#include "webapp/hooks.h"

#include "common/store/hook_store.h"

#include "common/base/openssl.h"

#include <strings.h>

#define POINTER_SIZE 48

enum err_code hook_url_allowed(const struct request *req, const char *url, const char *pointer,
                               struct err *err)
{
    struct hook_url parts;
    bool literal = false;
    enum err_code rc = hook_url_read(url, &parts, err);
    if (rc)
        return rc;
    if (req->web->cfg->webhook_https_only && !parts.is_https)
        return err_set_at(err, ERR_INVALID, pointer, "this site takes https: URLs only");
    if (!address_host_may(&req->web->hook_networks, parts.host, &literal))
        return err_set_at(err, ERR_INVALID, pointer,
                          "%.*s is not a public address; the administrators of this site can allow "
                          "it (webhook.allow_networks)",
                          SV_ARG(parts.host));
    return ERR_OK;
}

/* One for all jobs of a tenant that tell the same host. */
static enum err_code find_lane(const char *tenant, const char *url, struct uuid *ret_lane,
                               struct err *err)
{
    BUF_AUTO struct buf text = BUF_INIT(HOOK_URL_SIZE + TENANT_SIZE);
    struct hook_url parts;
    uint8_t digest[EVP_MAX_MD_SIZE];
    enum err_code rc = hook_url_read(url, &parts, err);
    if (rc)
        return rc;
    buf_addf(&text, "%s %d %u ", tenant, parts.is_https, parts.port);
    buf_add_sv(&text, parts.host);
    if (text.failed || EVP_Digest(text.ptr, text.len, digest, NULL, EVP_sha256(), NULL) != 1)
        return err_set(err, ERR_NOMEM, "out of memory");
    memcpy(ret_lane->bytes, digest, sizeof(ret_lane->bytes));
    return ERR_OK;
}

static bool is_same_receiver(const char *url, const char *other)
{
    struct hook_url one;
    struct hook_url two;
    struct err ignored = {0};
    return hook_url_read(url, &one, &ignored) == ERR_OK &&
           hook_url_read(other, &two, &ignored) == ERR_OK && one.is_https == two.is_https &&
           one.port == two.port && one.host.len == two.host.len &&
           strncasecmp(one.host.ptr, two.host.ptr, one.host.len) == 0;
}

/* A user's job may have a secret sign for the receiver that has it already, and for nobody else: a
 * signature that the user gets to see could be sent on. Who may not see the subscriptions learns
 * from the refusal no more than that these two do not belong together. */
static enum err_code check_secret(const struct request *req, const struct job_hook *hook,
                                  size_t index, struct err *err)
{
    struct subscription row;
    char pointer[POINTER_SIZE];
    enum err_code rc = hook_store_get(req->web->store, req->who.tenant, hook->secret, &row, err);
    if (rc == ERR_OK && is_same_receiver(hook->url, row.url))
        return ERR_OK;
    if (rc != ERR_OK && rc != ERR_NOT_FOUND)
        return rc;
    err_clear(err);
    (void)snprintf(pointer, sizeof(pointer), "/subscriptions/%zu/secret", index);
    return err_set_at(
        err, ERR_NOT_FOUND, pointer,
        "there is no subscription %s at the scheme, host and port of this url: a secret "
        "signs for its own receiver only",
        hook->secret);
}

enum err_code submission_hooks(const struct request *req, const struct job_request *request,
                               struct submission *submission, struct err *err)
{
    enum err_code rc = ERR_OK;
    for (size_t i = 0; i < request->hook_count && rc == ERR_OK; i++) {
        const struct job_hook *hook = &request->hooks[i];
        struct job_new_hook *to = &submission->hooks[i];
        char pointer[POINTER_SIZE];
        (void)snprintf(pointer, sizeof(pointer), "/subscriptions/%zu/url", i);
        *to =
            (struct job_new_hook){.url = hook->url, .states = hook->states, .secret = hook->secret};
        rc = hook_url_allowed(req, hook->url, pointer, err);
        if (rc == ERR_OK)
            rc = find_lane(req->who.tenant, hook->url, &to->lane, err);
        if (rc == ERR_OK && hook->secret)
            rc = check_secret(req, hook, i, err);
        submission->hook_count = i + 1;
    }
    return rc;
}
