/* SPDX-License-Identifier: MIT */
#include "worker/fetch_address.h"

#include "common/base/address.h"
#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/last_line.h"
#include "common/base/shown_url.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define POLL_MS 100
#define CONNECT_MS 15000L
#define REDIRECTS_MAX 5L
#define PIECE_BYTES ((size_t)64 * 1024)

enum err_code fetch_start(struct err *err)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT))
        return err_set(err, ERR_INTERNAL, "libcurl cannot be used");
    return ERR_OK;
}

/* What the callbacks of one transfer share. */
struct transfer {
    const struct fetch *fetch;
    CURL *easy;         /* NULL: it is a file */
    int64_t size_bytes; /* of that file; -1: not known */
    uint64_t written;
    struct err *err;
};

static enum err_code write_all(const struct fetch *fetch, const char *bytes, size_t size_bytes,
                               struct err *err)
{
    while (size_bytes > 0) {
        ssize_t done = write(fetch->fd, bytes, size_bytes);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return err_set_errno(err, ERR_IO, errno, "cannot write the input");
        bytes += done;
        size_bytes -= (size_t)done;
    }
    return ERR_OK;
}

/* As its server said, or its file has; -1: not known. */
static int64_t whole_bytes(const struct transfer *transfer)
{
    curl_off_t length = -1;
    if (!transfer->easy)
        return transfer->size_bytes;
    (void)curl_easy_getinfo(transfer->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    return length;
}

static enum err_code too_large(const struct transfer *transfer)
{
    uint64_t max_bytes = transfer->fetch->max_bytes;
    int64_t whole = whole_bytes(transfer);
    char size[40] = "it";
    if (whole > 0 && (uint64_t)whole > max_bytes)
        (void)snprintf(size, sizeof(size), "its %lld bytes", (long long)whole);
    return err_set(transfer->err, ERR_TOO_LARGE,
                   "%s %s larger than the limit of %llu bytes (worker.input_max_bytes)", size,
                   whole > 0 ? "are" : "is", (unsigned long long)max_bytes);
}

static enum err_code add_bytes(struct transfer *transfer, const char *bytes, size_t size_bytes)
{
    const struct fetch *fetch = transfer->fetch;
    if (size_bytes > fetch->max_bytes - transfer->written)
        return too_large(transfer);
    transfer->written += size_bytes;
    return write_all(fetch, bytes, size_bytes, transfer->err);
}

static size_t on_bytes(char *bytes, size_t size, size_t count, void *arg)
{
    return add_bytes(arg, bytes, size * count) ? CURL_WRITEFUNC_ERROR : size * count;
}

static enum err_code too_slow(const struct transfer *transfer)
{
    int64_t whole = whole_bytes(transfer);
    char of[32] = "";
    if (whole > 0)
        (void)snprintf(of, sizeof(of), " of %lld", (long long)whole);
    return err_set(transfer->err, ERR_TIMEOUT,
                   "it took longer than %u ms (worker.stage_timeout_ms): %llu%s bytes came",
                   transfer->fetch->timeout_ms, (unsigned long long)transfer->written, of);
}

static enum err_code check_time(const struct transfer *transfer)
{
    const struct fetch *fetch = transfer->fetch;
    if (fetch->interrupted && fetch->interrupted(fetch->arg))
        return err_set(transfer->err, ERR_STOPPING, "interrupted");
    return clock_mono_ms() > fetch->deadline_ms ? too_slow(transfer) : ERR_OK;
}

static enum err_code perform(CURLM *multi, struct transfer *transfer)
{
    int running = 1;
    while (running) {
        CURLMcode code = curl_multi_perform(multi, &running);
        if (code == CURLM_OK && running)
            code = curl_multi_poll(multi, NULL, 0, POLL_MS, NULL);
        if (code != CURLM_OK)
            return err_set(transfer->err, ERR_IO, "%s", curl_multi_strerror(code));
        enum err_code rc = check_time(transfer);
        if (rc)
            return rc;
    }
    return ERR_OK;
}

/* Errors that may pass, and what the job waits for then. All others are of the input itself: asking
 * again would give the same answer. */
static const struct {
    CURLcode code;
    long status; /* of HTTP, with CURLE_HTTP_RETURNED_ERROR */
    enum job_condition condition;
} passing[] = {
    {CURLE_COULDNT_RESOLVE_HOST, 0, JOB_COND_CONNECTION_FAILED},
    {CURLE_COULDNT_CONNECT, 0, JOB_COND_CONNECTION_FAILED},
    {CURLE_OPERATION_TIMEDOUT, 0, JOB_COND_CONNECTION_FAILED}, /* only connecting is timed so */
    {CURLE_HTTP_RETURNED_ERROR, 401, JOB_COND_AUTHENTICATION_FAILED},
    {CURLE_HTTP_RETURNED_ERROR, 403, JOB_COND_AUTHENTICATION_FAILED},
};

static enum job_condition condition_of(CURLcode code, long status)
{
    for (size_t i = 0; i < ARRAY_LEN(passing); i++) {
        if (passing[i].code == code && (passing[i].status == 0 || passing[i].status == status))
            return passing[i].condition;
    }
    return JOB_COND_NONE;
}

/* The server that was asked last: after a redirection it is not the one of the request. */
static void find_cause(CURL *easy, CURLcode code, long status, struct fetch_cause *cause)
{
    const char *text = NULL;
    enum job_condition condition = condition_of(code, status);
    CURLU *url = condition ? curl_url() : NULL;
    if (url && curl_easy_getinfo(easy, CURLINFO_EFFECTIVE_URL, &text) == CURLE_OK && text &&
        sv_is_utf8(sv_of(text)) && curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK &&
        fetch_split(url, cause))
        cause->condition = condition;
    curl_url_cleanup(url);
}

static const struct {
    long least; /* of the statuses that it counts for */
    long most;
    const char *says;
} statuses[] = {
    {401, 401, " (unauthorized): it wants other credentials"},
    {403, 403, " (forbidden): it refuses these credentials, or anybody"},
    {404, 404, " (not found): correct the address"},
    {410, 410, " (gone): it is not there any more"},
    {429, 429, " (too many requests): submit it again later"},
    {500, 599, ": a fault of that server; submit it again later"},
};

static enum err_code refused(CURL *easy, const char *url, long status, struct err *err)
{
    const char *says = "";
    const char *last = NULL;
    char other[SHOWN_URL_SIZE];
    char shown[SHOWN_URL_SIZE];
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
        if (status >= statuses[i].least && status <= statuses[i].most)
            says = statuses[i].says;
    }
    if (curl_easy_getinfo(easy, CURLINFO_EFFECTIVE_URL, &last) != CURLE_OK || !last)
        last = url;
    bool elsewhere = strcmp(shown_url(last, other), shown_url(url, shown)) != 0;
    return err_set(err, ERR_IO, "the server answered with status %ld%s%s%s", status, says,
                   elsewhere ? "; after a redirection to " : "", elsewhere ? other : "");
}

static enum err_code result_of(CURLM *multi, CURL *easy, struct transfer *transfer,
                               const char *detail)
{
    int left = 0;
    long status = 0;
    struct err *err = transfer->err;
    const CURLMsg *message = curl_multi_info_read(multi, &left);
    if (err->code)
        return err->code;
    if (!message || message->msg != CURLMSG_DONE)
        return err_set(err, ERR_IO, "the transfer did not end");
    if (message->data.result == CURLE_OK)
        return ERR_OK;
    (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    if (transfer->fetch->cause)
        find_cause(easy, message->data.result, status, transfer->fetch->cause);
    if (message->data.result == CURLE_HTTP_RETURNED_ERROR)
        return refused(easy, transfer->fetch->url, status, err);
    return err_set(err, ERR_IO, "%s",
                   detail[0] ? detail : curl_easy_strerror(message->data.result));
}

/* Looked at when the name has been resolved, and again for each redirection. */
static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct transfer *transfer = arg;
    (void)purpose;
    if (!transfer->fetch->link_local && address_is_of_host(&address->addr)) {
        char host[NI_MAXHOST] = "its address";
        (void)getnameinfo(&address->addr, address->addrlen, host, sizeof(host), NULL, 0,
                          NI_NUMERICHOST);
        (void)err_set(transfer->err, ERR_FORBIDDEN,
                      "%.60s is link-local or one of the few others where clouds keep credentials: "
                      "these are refused (worker.input_link_local is false)",
                      host);
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static bool set_options(CURL *easy, struct transfer *transfer, char *detail)
{
    CURLcode bad = CURLE_OK;
    int64_t left_ms = transfer->fetch->deadline_ms - clock_mono_ms();
    long connect_ms = left_ms / 2 < CONNECT_MS ? (long)(left_ms / 2) : CONNECT_MS;
    bad |= curl_easy_setopt(easy, CURLOPT_URL, transfer->fetch->url);
    bad |= curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    bad |= curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    bad |= curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
    bad |= curl_easy_setopt(easy, CURLOPT_MAXREDIRS, REDIRECTS_MAX);
    bad |= curl_easy_setopt(easy, CURLOPT_FAILONERROR, 1L);
    bad |= curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    bad |= curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, connect_ms > 0 ? connect_ms : 1L);
    bad |= curl_easy_setopt(easy, CURLOPT_USERAGENT, "sluice-worker/" SLUICE_VERSION);
    bad |= curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, detail);
    bad |= curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_bytes);
    bad |= curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    bad |= curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    bad |= curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, transfer);
    return bad == CURLE_OK;
}

static enum err_code fetch_http(const struct fetch *fetch, struct err *err)
{
    char detail[CURL_ERROR_SIZE] = "";
    CURL *easy = curl_easy_init();
    struct transfer transfer = {.fetch = fetch, .easy = easy, .size_bytes = -1, .err = err};
    CURLM *multi = curl_multi_init();
    enum err_code rc = ERR_NOMEM;
    if (!easy || !multi || !set_options(easy, &transfer, detail) ||
        curl_multi_add_handle(multi, easy) != CURLM_OK) {
        rc = err_set(err, ERR_NOMEM, "libcurl has no memory");
    } else {
        rc = perform(multi, &transfer);
        if (rc == ERR_OK)
            rc = result_of(multi, easy, &transfer, detail);
        (void)curl_multi_remove_handle(multi, easy);
    }
    curl_easy_cleanup(easy);
    (void)curl_multi_cleanup(multi);
    return rc;
}

enum err_code fetch_copy(const struct fetch *fetch, int from_fd, uint64_t *ret_bytes,
                         struct err *err)
{
    struct stat st;
    struct transfer transfer = {
        .fetch = fetch, .size_bytes = fstat(from_fd, &st) == 0 ? st.st_size : -1, .err = err};
    char *piece = malloc(PIECE_BYTES);
    if (!piece)
        return err_set(err, ERR_NOMEM, "no memory to copy a file");
    enum err_code rc = ERR_OK;
    ssize_t got = 1;
    while (got > 0 && rc == ERR_OK) {
        rc = check_time(&transfer);
        if (rc)
            break;
        got = read(from_fd, piece, PIECE_BYTES);
        if (got < 0 && errno == EINTR)
            got = 1;
        else if (got < 0)
            rc = err_set_errno(err, ERR_IO, errno, "cannot read the file");
        else if (got > 0)
            rc = add_bytes(&transfer, piece, (size_t)got);
    }
    free(piece);
    if (rc == ERR_OK && ret_bytes)
        *ret_bytes = transfer.written;
    return rc;
}

/* Opens path beneath the root that it names; ERR_FORBIDDEN if none of them does. */
static enum err_code open_allowed(const struct config_list *roots, const char *path, int *ret_fd,
                                  struct err *err)
{
    for (size_t i = 0; i < roots->count; i++) {
        const char *root = roots->items[i];
        size_t length = strlen(root);
        while (length > 1 && root[length - 1] == '/')
            length--;
        if (strncmp(path, root, length) != 0 || path[length] != '/' || !path[length + 1])
            continue;
        FD_AUTO int root_fd = -1;
        enum err_code rc = fs_open_dir(root, false, &root_fd, err);
        return rc ? rc
                  : fs_open_beneath(root_fd, path + length + 1, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0,
                                    ret_fd, err);
    }
    char shown[SHOWN_URL_SIZE];
    char roots_text[40] = "none is set on this worker";
    if (roots->count)
        (void)snprintf(roots_text, sizeof(roots_text), "%zu set on this worker", roots->count);
    return err_set(err, ERR_FORBIDDEN,
                   "%s is beneath none of the folders of worker.file_roots (%s): use one that is, "
                   "or send the file along",
                   text_quotable(sv_of(path), shown, sizeof(shown)), roots_text);
}

static enum err_code fetch_file(const struct fetch *fetch, struct err *err)
{
    FD_AUTO int fd = -1;
    struct stat st;
    int length = 0;
    char *path = curl_easy_unescape(NULL, fetch->url + strlen("file://"), 0, &length);
    if (!path || (size_t)length != strlen(path)) {
        curl_free(path);
        return err_set(err, ERR_INVALID, "the path cannot be read");
    }
    enum err_code rc = open_allowed(fetch->roots, path, &fd, err);
    curl_free(path);
    if (rc)
        return rc;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return err_set(err, ERR_INVALID, "it is not a regular file");
    return fetch_copy(fetch, fd, NULL, err);
}

enum err_code fetch_run(const struct fetch *fetch, struct err *err)
{
    if (strncmp(fetch->url, "file://", strlen("file://")) == 0)
        return fetch_file(fetch, err);
    return fetch_http(fetch, err);
}
