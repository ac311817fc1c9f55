/* SPDX-License-Identifier: MIT */
#include "readers/webhook/post.h"

#include "common/auth/hook_sign.h"
#include "common/base/clock.h"
#include "common/model/retry.h"

#include <curl/curl.h>
#include <unistd.h>

#define ANSWER_MAX 65536 /* bytes of an answer's body that are waited for */
#define HEADER_SIZE 256
#define GONE 410

struct poster {
    struct post_site *site;
    CURL *curl;   /* keeps connections for the next delivery */
    bool refused; /* an address */
    size_t answer_bytes;
    int64_t stop_by_ms;
    char detail[CURL_ERROR_SIZE];
};

enum err_code post_start(struct err *err)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return err_set(err, ERR_IO, "libcurl does not start");
    return ERR_OK;
}

void post_end(void)
{
    curl_global_cleanup();
}

enum err_code poster_open(struct post_site *site, struct poster **ret_poster, struct err *err)
{
    struct poster *poster = calloc(1, sizeof(*poster));
    CURL *curl = poster ? curl_easy_init() : NULL;
    if (!curl) {
        free(poster);
        return err_set(err, ERR_NOMEM, "no memory for a sender");
    }
    *poster = (struct poster){.site = site, .curl = curl};
    *ret_poster = poster;
    return ERR_OK;
}

void poster_free(struct poster *poster)
{
    if (!poster)
        return;
    curl_easy_cleanup(poster->curl);
    free(poster);
}

/* ---- what libcurl asks us ----------------------------------------------------------------------
 */

static curl_socket_t on_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct poster *poster = arg;
    if (purpose != CURLSOCKTYPE_IPCXN || !address_may(&poster->site->allowed, &address->addr)) {
        poster->refused = true;
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static size_t on_answer(char *bytes, size_t size, size_t count, void *arg)
{
    struct poster *poster = arg;
    (void)bytes;
    poster->answer_bytes += size * count;
    return poster->answer_bytes > ANSWER_MAX ? CURL_WRITEFUNC_ERROR : size * count;
}

static int on_progress(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    struct poster *poster = arg;
    (void)a;
    (void)b;
    (void)c;
    (void)d;
    if (!atomic_load(&poster->site->stop))
        return 0;
    if (poster->stop_by_ms == 0)
        poster->stop_by_ms = clock_mono_ms() + POST_STOP_MS;
    return clock_mono_ms() >= poster->stop_by_ms;
}

/* ---- the request -------------------------------------------------------------------------------
 */

static void add_signature(struct buf *header, const char *key, const uint8_t *seed, int64_t now_s,
                          struct sv body)
{
    char secret[HOOK_SECRET_SIZE];
    char signature[HOOK_SIGNATURE_SIZE];
    (void)hook_secret(key, (struct sv){(const char *)seed, HOOK_SEED_SIZE}, secret);
    buf_addf(header, ",v1=%s", hook_signature(secret, now_s, body, signature));
}

static bool add_header(struct curl_slist **list, const char *text)
{
    struct curl_slist *more = curl_slist_append(*list, text);
    if (more)
        *list = more;
    return more != NULL;
}

static bool add_headers(const struct poster *poster, const struct hook_delivery *delivery,
                        struct curl_slist **list)
{
    BUF_AUTO struct buf signature = BUF_INIT(1024);
    char text[HEADER_SIZE];
    char id[UUID_TEXT_SIZE];
    const char *key = poster->site->cfg->webhook_key;
    struct sv body = sv_of(delivery->body);
    int64_t now_s = clock_wall_s();
    bool good = add_header(list, "Content-Type: application/json") && add_header(list, "Expect:");
    (void)snprintf(text, sizeof(text), "Sluice-Delivery: %s", uuid_text(&delivery->id, id));
    good = good && add_header(list, text);
    (void)snprintf(text, sizeof(text), "Sluice-Attempt: %u", delivery->attempts + 1);
    good = good && add_header(list, text);
    (void)snprintf(text, sizeof(text), "Sluice-Event: job.status");
    good = good && add_header(list, text);
    if (!delivery->has_seed)
        return good;
    buf_addf(&signature, "Sluice-Signature: t=%lld", (long long)now_s);
    add_signature(&signature, key, delivery->seed, now_s, body);
    if (delivery->has_old_seed)
        add_signature(&signature, key, delivery->old_seed, now_s, body);
    return good && !signature.failed && add_header(list, buf_text(&signature));
}

static bool set_guards(struct poster *poster)
{
    const struct config *cfg = poster->site->cfg;
    CURL *curl = poster->curl;
    CURLcode bad = CURLE_OK;
    bad |= curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR,
                            cfg->webhook_https_only ? "https" : "http,https");
    bad |= curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    bad |= curl_easy_setopt(curl, CURLOPT_PROXY, "");
    bad |= curl_easy_setopt(curl, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    bad |= curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, on_socket);
    bad |= curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, poster);
    bad |= curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    bad |= curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)cfg->webhook_connect_timeout_ms);
    bad |= curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)cfg->webhook_timeout_ms);
    if (cfg->webhook_tls_ca[0])
        bad |= curl_easy_setopt(curl, CURLOPT_CAINFO, cfg->webhook_tls_ca);
    return bad == CURLE_OK;
}

static bool set_request(struct poster *poster, const struct hook_delivery *delivery,
                        struct curl_slist *headers)
{
    CURL *curl = poster->curl;
    CURLcode bad = CURLE_OK;
    bad |= curl_easy_setopt(curl, CURLOPT_URL, delivery->url);
    bad |= curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    bad |= curl_easy_setopt(curl, CURLOPT_POST, 1L);
    bad |= curl_easy_setopt(curl, CURLOPT_POSTFIELDS, delivery->body);
    bad |= curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)strlen(delivery->body));
    bad |= curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    bad |= curl_easy_setopt(curl, CURLOPT_USERAGENT, "Sluice/" SLUICE_VERSION);
    bad |= curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_answer);
    bad |= curl_easy_setopt(curl, CURLOPT_WRITEDATA, poster);
    bad |= curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    bad |= curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    bad |= curl_easy_setopt(curl, CURLOPT_XFERINFODATA, poster);
    bad |= curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, poster->detail);
    return bad == CURLE_OK;
}

/* ---- the outcome -------------------------------------------------------------------------------
 */

void post_judge(const struct config *cfg, const struct hook_delivery *delivery,
                int64_t retry_after_s, struct hook_result *result)
{
    const struct retry retry = {cfg->webhook_retry_first_ms, cfg->webhook_retry_most_ms};
    bool taken = result->http_status >= 200 && result->http_status < 300;
    result->outcome = taken ? HOOK_DELIVERED : HOOK_AGAIN;
    result->again_ms = retry_pause_ms(&retry, delivery->attempts + 1);
    if (taken)
        return;
    if (retry_after_s > cfg->webhook_retry_most_ms / 1000)
        retry_after_s = cfg->webhook_retry_most_ms / 1000;
    if (result->again_ms < retry_after_s * 1000)
        result->again_ms = retry_after_s * 1000;
    bool late = delivery->age_us / 1000 + result->again_ms > (int64_t)cfg->webhook_give_up_s * 1000;
    if (late || result->http_status == GONE)
        result->outcome = HOOK_DEAD;
}

static void explain(const struct poster *poster, CURLcode code, struct hook_result *result)
{
    unsigned status = result->http_status;
    char *error = result->error;
    size_t size = sizeof(result->error);
    if (status >= 200 && status < 300)
        return;
    if (status >= 300 && status < 400)
        (void)snprintf(error, size, "the receiver answered %u: redirects are not followed", status);
    else if (status)
        (void)snprintf(error, size, "the receiver answered %u", status);
    else if (poster->refused)
        (void)snprintf(error, size,
                       "the address of the host is not public, and not in webhook.allow_networks");
    else
        (void)snprintf(error, size, "%s",
                       poster->detail[0] ? poster->detail : curl_easy_strerror(code));
}

static CURLcode perform(struct poster *poster, const struct hook_delivery *delivery)
{
    struct curl_slist *headers = NULL;
    poster->refused = false;
    poster->answer_bytes = 0;
    poster->detail[0] = 0;
    curl_easy_reset(poster->curl);
    CURLcode code = CURLE_OUT_OF_MEMORY;
    if (add_headers(poster, delivery, &headers) && set_guards(poster) &&
        set_request(poster, delivery, headers))
        code = curl_easy_perform(poster->curl);
    curl_slist_free_all(headers);
    return code;
}

bool post(struct poster *poster, const struct hook_delivery *delivery,
          struct hook_result *ret_result)
{
    struct hook_result result = {.of = delivery};
    long status = 0;
    curl_off_t after_s = 0;
    int64_t began_ms = clock_mono_ms();
    if (began_ms >= atomic_load(&poster->site->send_until_ms))
        return false;
    if (delivery->lacks_secret) {
        (void)snprintf(result.error, sizeof(result.error),
                       "the subscription whose secret should sign is gone");
    } else {
        CURLcode code = perform(poster, delivery);
        if (code == CURLE_ABORTED_BY_CALLBACK)
            return false;
        /* An answer counts as soon as its status is known, whatever becomes of its body. */
        (void)curl_easy_getinfo(poster->curl, CURLINFO_RESPONSE_CODE, &status);
        (void)curl_easy_getinfo(poster->curl, CURLINFO_RETRY_AFTER, &after_s);
        result.http_status = status > 0 && status < 1000 ? (uint32_t)status : 0;
        explain(poster, code, &result);
    }
    result.took_ms = (uint32_t)(clock_mono_ms() - began_ms);
    post_judge(poster->site->cfg, delivery, after_s, &result);
    *ret_result = result;
    return true;
}
