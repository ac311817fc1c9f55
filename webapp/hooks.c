/* SPDX-License-Identifier: MIT */
#include "webapp/hooks.h"

#include "common/store/hook_store.h"

#include "common/base/openssl.h"

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

static enum err_code check_secret(const struct request *req, const char *name, size_t index,
                                  struct err *err)
{
    struct subscription row;
    char pointer[POINTER_SIZE];
    enum err_code rc = hook_store_get(req->web->store, req->who.tenant, name, &row, err);
    if (rc != ERR_NOT_FOUND)
        return rc;
    err_clear(err);
    (void)snprintf(pointer, sizeof(pointer), "/subscriptions/%zu/secret", index);
    return err_set_at(err, ERR_NOT_FOUND, pointer,
                      "there is no subscription %s whose secret could sign", name);
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
            rc = check_secret(req, hook->secret, i, err);
        submission->hook_count = i + 1;
    }
    return rc;
}
