/* SPDX-License-Identifier: MIT */
#include "cli/http.h"

#include <curl/curl.h>
#include <strings.h>

#define HTTP_ANSWER_MAX ((size_t)256 * 1024 * 1024)
#define HTTP_CONNECT_MS 5000L
#define HTTP_HEADER_MAX 20000
#define HTTP_POLL_MS 200

struct http {
    char *url;
    char *authorization; /* header line, NULL for none */
    uint32_t timeout_ms;
    char *ca, *cert, *key; /* files; NULL for none */
    bool any_name;
    CURLM *multi;
};

/* One transfer under way. */
struct exchange {
    CURL *easy;
    struct curl_slist *headers;
    const struct http_request *request;
    struct http_answer *answer;
    char error[CURL_ERROR_SIZE];
};

static bool has_same_part(CURLU *one, CURLU *other, CURLUPart part)
{
    char *first = NULL;
    char *second = NULL;
    bool same = curl_url_get(one, part, &first, CURLU_DEFAULT_PORT) == CURLUE_OK &&
                curl_url_get(other, part, &second, CURLU_DEFAULT_PORT) == CURLUE_OK &&
                strcasecmp(first, second) == 0;
    curl_free(first);
    curl_free(second);
    return same;
}

bool http_is_same_place(const char *url, const char *other)
{
    CURLU *one = curl_url();
    CURLU *two = curl_url();
    bool same = one && two && curl_url_set(one, CURLUPART_URL, url, 0) == CURLUE_OK &&
                curl_url_set(two, CURLUPART_URL, other, 0) == CURLUE_OK &&
                has_same_part(one, two, CURLUPART_SCHEME) &&
                has_same_part(one, two, CURLUPART_HOST) && has_same_part(one, two, CURLUPART_PORT);
    curl_url_cleanup(one);
    curl_url_cleanup(two);
    return same;
}

enum err_code http_open(const char *url, const char *token, uint32_t timeout_ms,
                        struct http **ret_http, struct err *err)
{
    struct http *http = calloc(1, sizeof(*http));
    BUF_AUTO struct buf line = BUF_INIT(HTTP_HEADER_MAX);
    if (!http || curl_global_init(CURL_GLOBAL_DEFAULT) != 0) {
        free(http);
        return err_set(err, ERR_NOMEM, "libcurl cannot be started");
    }
    size_t length = strlen(url);
    while (length > 0 && url[length - 1] == '/')
        length--;
    http->url = strndup(url, length);
    if (*token) {
        buf_addf(&line, "Authorization: Bearer %s", token);
        http->authorization = buf_take(&line);
    }
    http->timeout_ms = timeout_ms;
    http->multi = curl_multi_init();
    *ret_http = http;
    return ERR_OK;
}

static void keep(char **slot, const char *path)
{
    free(*slot);
    *slot = *path ? strdup(path) : NULL;
}

void http_use_tls(struct http *http, const char *ca, const char *cert, const char *key)
{
    keep(&http->ca, ca);
    keep(&http->cert, cert);
    keep(&http->key, key);
}

void http_pin(struct http *http, const char *cert)
{
    keep(&http->ca, cert);
    http->any_name = true;
}

void http_free(struct http *http)
{
    if (!http)
        return;
    curl_multi_cleanup(http->multi);
    free(http->url);
    free(http->authorization);
    free(http->ca);
    free(http->cert);
    free(http->key);
    free(http);
}

static size_t take_bytes(char *bytes, size_t size, size_t count, void *arg)
{
    struct exchange *exchange = arg;
    long status = 0;
    (void)curl_easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
    if (exchange->request->on_bytes && status < 300)
        return exchange->request->on_bytes(exchange->request->arg, (struct sv){bytes, size * count})
                   ? size * count
                   : 0;
    return buf_add(&exchange->answer->body, bytes, size * count) ? size * count : 0;
}

static void keep_header(struct sv line, const char *name, char *ret_value, size_t size)
{
    size_t length = strlen(name);
    if (line.len <= length || strncasecmp(line.ptr, name, length) != 0)
        return;
    struct sv value = {line.ptr + length, line.len - length};
    while (value.len > 0 && value.ptr[0] == ' ')
        value = (struct sv){value.ptr + 1, value.len - 1};
    while (value.len > 0 && (value.ptr[value.len - 1] == '\n' || value.ptr[value.len - 1] == '\r'))
        value.len--;
    if (!sv_copy(value, ret_value, size))
        ret_value[0] = 0;
}

static size_t take_header(char *bytes, size_t size, size_t count, void *arg)
{
    struct exchange *exchange = arg;
    struct sv line = {bytes, size * count};
    keep_header(line, "etag:", exchange->answer->etag, sizeof(exchange->answer->etag));
    keep_header(line, "location:", exchange->answer->location, sizeof(exchange->answer->location));
    keep_header(line, "x-request-id:", exchange->answer->request_id,
                sizeof(exchange->answer->request_id));
    keep_header(line, "retry-after:", exchange->answer->retry_after,
                sizeof(exchange->answer->retry_after));
    return size * count;
}

static void set_headers(const struct http *http, struct exchange *exchange)
{
    const struct http_request *request = exchange->request;
    if (http->authorization)
        exchange->headers = curl_slist_append(exchange->headers, http->authorization);
    exchange->headers = curl_slist_append(exchange->headers, "Content-Type: application/json");
    exchange->headers = curl_slist_append(exchange->headers, "Expect:");
    if (request->header)
        exchange->headers = curl_slist_append(exchange->headers, request->header);
    (void)curl_easy_setopt(exchange->easy, CURLOPT_HTTPHEADER, exchange->headers);
}

static void set_tls(const struct http *http, CURL *easy)
{
    (void)curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (http->ca)
        (void)curl_easy_setopt(easy, CURLOPT_CAINFO, http->ca);
    if (http->ca && http->any_name)
        (void)curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    if (http->cert)
        (void)curl_easy_setopt(easy, CURLOPT_SSLCERT, http->cert);
    if (http->key)
        (void)curl_easy_setopt(easy, CURLOPT_SSLKEY, http->key);
}

static bool exchange_begin(const struct http *http, struct exchange *exchange)
{
    const struct http_request *request = exchange->request;
    BUF_AUTO struct buf url = BUF_INIT(HTTP_HEADER_MAX);
    CURL *easy = exchange->easy = curl_easy_init();
    if (!easy)
        return false;
    exchange->answer->body = BUF_INIT(HTTP_ANSWER_MAX);
    buf_addf(&url, "%s%s", http->url, request->path);
    (void)curl_easy_setopt(easy, CURLOPT_URL, buf_text(&url));
    (void)curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
    (void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, exchange->error);
    (void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, HTTP_CONNECT_MS);
    if (!request->on_bytes)
        (void)curl_easy_setopt(
            easy, CURLOPT_TIMEOUT_MS,
            (long)(request->timeout_ms ? request->timeout_ms : http->timeout_ms));
    if (request->body.len > 0) {
        (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->body.ptr);
        (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.len);
    }
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_bytes);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, exchange);
    (void)curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    (void)curl_easy_setopt(easy, CURLOPT_HEADERDATA, exchange);
    (void)curl_easy_setopt(easy, CURLOPT_PRIVATE, exchange);
    set_tls(http, easy);
    set_headers(http, exchange);
    return curl_multi_add_handle(http->multi, easy) == CURLM_OK;
}

static void exchange_end(const struct http *http, struct exchange *exchange)
{
    if (!exchange->easy)
        return;
    (void)curl_easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &exchange->answer->status);
    (void)curl_multi_remove_handle(http->multi, exchange->easy);
    curl_slist_free_all(exchange->headers);
    curl_easy_cleanup(exchange->easy);
    exchange->easy = NULL;
}

static const char *cure_of(const struct http *http, CURLcode fault)
{
    if (fault == CURLE_COULDNT_CONNECT)
        return "; is sluice-web running there? SLUICE_URL or --context names another address";
    bool cut = fault == CURLE_GOT_NOTHING || fault == CURLE_RECV_ERROR || fault == CURLE_SEND_ERROR;
    if (cut && strncasecmp(http->url, "https:", 6) == 0)
        return "; the service may want a certificate of ours (client.tls_cert)";
    if (fault == CURLE_PEER_FAILED_VERIFICATION)
        return "; name the CA of the service by --ca or SLUICE_CA, and the service as its "
               "certificate does";
    if (fault == CURLE_SSL_CONNECT_ERROR)
        return "; does the service speak TLS there (https://), and does it want a certificate "
               "(client.tls_cert)?";
    return "";
}

/* Notes the transfers that ended. */
static void collect(const struct http *http, const struct exchange *exchanges,
                    struct http_transfer *transfers)
{
    int left = 0;
    const CURLMsg *message = NULL;
    while ((message = curl_multi_info_read(http->multi, &left)) != NULL) {
        struct exchange *exchange = NULL;
        if (message->msg != CURLMSG_DONE)
            continue;
        (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&exchange);
        struct http_transfer *transfer = &transfers[exchange - exchanges];
        transfer->code = ERR_OK;
        err_clear(&transfer->err); /* it said "interrupted" until now */
        if (message->data.result != CURLE_OK)
            transfer->code = err_set(&transfer->err, ERR_IO, "%s: %s%s", http->url,
                                     exchange->error[0] ? exchange->error
                                                        : curl_easy_strerror(message->data.result),
                                     cure_of(http, message->data.result));
    }
}

void http_send_all(struct http *http, struct http_transfer *transfers, size_t count,
                   bool (*keep_on)(void *arg), void *arg)
{
    int running = 1;
    struct exchange *exchanges = calloc(count, sizeof(*exchanges));
    for (size_t i = 0; i < count; i++) {
        transfers[i].code = err_set(&transfers[i].err, ERR_IO, "%s: interrupted", http->url);
        if (!exchanges)
            continue;
        exchanges[i].request = transfers[i].request;
        exchanges[i].answer = &transfers[i].answer;
        if (!exchange_begin(http, &exchanges[i]))
            running = 0;
    }
    while (exchanges && running > 0 && (!keep_on || keep_on(arg))) {
        if (curl_multi_perform(http->multi, &running) != CURLM_OK)
            break;
        collect(http, exchanges, transfers);
        if (running > 0)
            (void)curl_multi_poll(http->multi, NULL, 0, HTTP_POLL_MS, NULL);
    }
    for (size_t i = 0; exchanges && i < count; i++)
        exchange_end(http, &exchanges[i]);
    free(exchanges);
}

enum err_code http_send(struct http *http, const struct http_request *request,
                        struct http_answer *ret_answer, struct err *err)
{
    struct http_transfer transfer = {.request = request};
    http_send_all(http, &transfer, 1, NULL, NULL);
    if (transfer.code) {
        http_answer_done(&transfer.answer);
        return err_set(err, transfer.code, "%s", transfer.err.text);
    }
    *ret_answer = transfer.answer;
    return ERR_OK;
}

void http_answer_done(struct http_answer *answer)
{
    buf_done(&answer->body);
}
