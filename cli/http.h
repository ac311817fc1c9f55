/* SPDX-License-Identifier: MIT */
#ifndef CLI_HTTP_H
#define CLI_HTTP_H

/* http: requests to sluice-web over libcurl. Threads: owner. Memory: http_free() and
 * http_answer_done() free. */

#include "common/base/buf.h"
#include "common/base/err.h"

struct http;

struct http_request {
    const char *method;
    const char *path;    /* "/v1/jobs?limit=10" */
    struct sv body;      /* JSON; empty: none */
    const char *header;  /* one more header line, NULL: none */
    uint32_t timeout_ms; /* 0: the configured one */
    /* Called with the bytes of a 2xx answer as they come, instead of collecting them; may be NULL.
     * false ends the transfer. */
    bool (*on_bytes)(void *arg, struct sv bytes);
    void *arg;
};

struct http_answer {
    long status;
    struct buf body;
    char etag[64];
    char location[1024];
    char request_id[64];
    char retry_after[16]; /* seconds; "" if the service named none */
};

/* token may be "". Both are copied. */
/* Same scheme, host and port. */
MUST_USE bool http_is_same_place(const char *url, const char *other);
MUST_USE enum err_code http_open(const char *url, const char *token, uint32_t timeout_ms,
                                 struct http **ret_http, struct err *err);
/* Files of an https address, "" for none: the CA certificates that it is checked by (else the
 * system's), our certificate and its key. Copied. The server's name is checked always. */
void http_use_tls(struct http *http, const char *ca, const char *cert, const char *key);
/* Of a process on this machine: it must show the certificate of this file, whatever its name. */
void http_pin(struct http *http, const char *cert);
void http_free(struct http *http);
/* ERR_IO: no answer came (no connection, time-out). Any status is ERR_OK. */
MUST_USE enum err_code http_send(struct http *http, const struct http_request *request,
                                 struct http_answer *ret_answer, struct err *err);
void http_answer_done(struct http_answer *answer);

/* Two or more requests at once; each answers as http_send would. */
struct http_transfer {
    const struct http_request *request;
    struct http_answer answer;
    struct err err;
    enum err_code code;
};
void http_send_all(struct http *http, struct http_transfer *transfers, size_t count,
                   bool (*keep_on)(void *arg), void *arg);

#define HTTP_ANSWER_AUTO __attribute__((cleanup(http_answer_done)))

#endif
