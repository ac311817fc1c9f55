/* SPDX-License-Identifier: MIT */
#include "cli/follow.h"

#include "cli/sse.h"
#include "common/base/openssl.h"

#include <signal.h>
#include <unistd.h>

#define FOLLOW_TRIES 60
#define FOLLOW_PAUSE_MS 500

static volatile sig_atomic_t interrupts;

struct stream {
    struct sse sse;
    int fd;
    const char *name;
    char header[96];
    char path[160];
    bool ended;
    json_t **ret_job; /* where the end event's job goes */
};

static void note_interrupt(int signo)
{
    (void)signo;
    interrupts++;
}

static bool write_all(int fd, const unsigned char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t done = write(fd, bytes, length);
        if (done <= 0)
            return false;
        bytes += done;
        length -= (size_t)done;
    }
    return true;
}

/* Base64 with padding (RFC 4648, 4), as the service writes it. */
static bool write_base64(int fd, struct sv text)
{
    unsigned char *bytes = malloc(text.len / 4 * 3 + 3);
    int length =
        bytes ? EVP_DecodeBlock(bytes, (const unsigned char *)text.ptr, (int)text.len) : -1;
    for (size_t i = 0; i < 2 && length > 0 && text.len > i && text.ptr[text.len - 1 - i] == '=';
         i++)
        length--;
    bool ok = length >= 0 && write_all(fd, bytes, (size_t)length);
    free(bytes);
    return ok;
}

static bool take_event(void *arg, const char *event, struct sv data)
{
    struct stream *stream = arg;
    if (strcmp(event, "output") == 0)
        return write_base64(stream->fd, data);
    if (strcmp(event, "end") == 0) {
        stream->ended = true;
        if (!*stream->ret_job)
            *stream->ret_job = json_loadb(data.ptr, data.len, 0, NULL);
    }
    return true;
}

/* Keeps transfers going until a new interrupt has come. */
static bool no_new_interrupt(void *arg)
{
    return interrupts == *(const sig_atomic_t *)arg;
}

static void open_stream(struct stream *stream, struct http_transfer *transfer,
                        struct http_request *request)
{
    sse_restart(&stream->sse);
    if (stream->sse.id[0])
        (void)snprintf(stream->header, sizeof(stream->header), "Last-Event-ID: %s", stream->sse.id);
    *request = (struct http_request){
        .method = "GET",
        .path = stream->path,
        .header = stream->sse.id[0] ? stream->header : NULL,
        .on_bytes = sse_take,
        .arg = &stream->sse,
    };
    *transfer = (struct http_transfer){.request = request};
}

/* One round over the streams that have not ended. CLI_DONE: go on or all ended. */
static int follow_round(struct cli *cli, struct stream *streams, size_t count)
{
    struct http_transfer transfers[2];
    struct http_request requests[2];
    size_t open = 0;
    int status = CLI_DONE;
    for (size_t i = 0; i < count; i++) {
        if (!streams[i].ended) {
            open_stream(&streams[i], &transfers[open], &requests[open]);
            open++;
        }
    }
    sig_atomic_t seen = interrupts;
    http_send_all(cli_http(cli), transfers, open, no_new_interrupt, &seen);
    for (size_t i = 0; i < open; i++) {
        /* 503 and a cut connection are tried again; a refusal is final */
        long answered = transfers[i].answer.status;
        if (answered >= 400 && answered < 500 && status == CLI_DONE)
            status = cli_problem(cli, &transfers[i].answer);
        http_answer_done(&transfers[i].answer);
    }
    return status;
}

static bool all_ended(const struct stream *streams, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!streams[i].ended)
            return false;
    }
    return true;
}

static void cancel(struct cli *cli, const char *id)
{
    char path[80];
    (void)snprintf(path, sizeof(path), "/v1/jobs/%s/cancel", id);
    (void)cli_fail(0, "cancelling job %s; interrupt again to leave it", id);
    (void)cli_call(cli, "POST", path, NULL, NULL);
}

static int follow_to_end(struct cli *cli, const char *id, struct stream *streams, size_t count,
                         bool cancel_on_interrupt)
{
    int cut = 0;
    int status = CLI_DONE;
    sig_atomic_t handled = interrupts;
    while (status == CLI_DONE && !all_ended(streams, count)) {
        char before[2][64];
        for (size_t i = 0; i < count; i++)
            memcpy(before[i], streams[i].sse.id, sizeof(before[i]));
        status = follow_round(cli, streams, count);
        if (status != CLI_DONE || all_ended(streams, count))
            break;
        if (interrupts > handled) {
            if (!cancel_on_interrupt || interrupts > 1)
                return 130;
            handled = interrupts;
            cancel(cli, id);
            continue;
        }
        bool moved = false;
        for (size_t i = 0; i < count; i++)
            moved = moved || strcmp(before[i], streams[i].sse.id) != 0;
        cut = moved ? 0 : cut + 1;
        if (cut > FOLLOW_TRIES)
            return cli_fail(CLI_NO_CONNECTION, "the connection was lost; job %s goes on", id);
        (void)usleep(FOLLOW_PAUSE_MS * 1000);
    }
    return status;
}

int follow_job(struct cli *cli, const char *id, unsigned which, bool cancel_on_interrupt,
               json_t **ret_job)
{
    static const char *const names[] = {"stdout", "stderr"};
    struct stream streams[2];
    size_t count = 0;
    json_t *job = NULL;
    struct sigaction interrupt = {.sa_handler = note_interrupt};
    struct sigaction before;
    if (!cli_http(cli))
        return CLI_USAGE;
    for (unsigned i = 0; i < 2; i++) {
        if (!(which & 1u << i))
            continue;
        struct stream *stream = &streams[count++];
        *stream = (struct stream){.fd = (int)i + 1, .name = names[i], .ret_job = &job};
        stream->sse = SSE_INIT(take_event, stream);
        (void)snprintf(stream->path, sizeof(stream->path), "/v1/jobs/%s/output/%s?follow=true", id,
                       names[i]);
    }
    (void)sigaction(SIGINT, &interrupt, &before);
    int status = follow_to_end(cli, id, streams, count, cancel_on_interrupt);
    (void)sigaction(SIGINT, &before, NULL);
    for (size_t i = 0; i < count; i++)
        sse_done(&streams[i].sse);
    if (status == CLI_DONE && job)
        *ret_job = TAKE(job);
    else if (status == CLI_DONE)
        status = cli_fail(CLI_REFUSED, "the service did not tell how job %s ended", id);
    json_decref(job);
    return status;
}

static int failure_status(const json_t *job)
{
    const char *condition = cli_text(job, "condition");
    const char *reason = cli_text(job, "reason");
    if (strcmp(condition, "START_FAILED") == 0) {
        (void)cli_fail(0, "%s", *reason ? reason : "the command could not be started");
        return strstr(reason, "ENOENT") || !strstr(reason, "EACCES") ? 127 : 126;
    }
    (void)cli_fail(0, "job %s %s: %s%s%s", cli_text(job, "id"), cli_text(job, "status"), condition,
                   *reason ? ": " : "", reason);
    return strcmp(condition, "TIME_LIMIT") == 0 ? 124 : 125;
}

/* Its command has an end of its own then. */
static bool is_of_command(const char *condition)
{
    return strcmp(condition, "COMMAND_FAILED") == 0 ||
           strcmp(condition, "COMMAND_SIGNALLED") == 0 || strcmp(condition, "MEMORY_LIMIT") == 0;
}

int follow_status(const json_t *job)
{
    const json_t *code = json_object_get(job, "exitCode");
    const json_t *signo = json_object_get(job, "signal");
    const char *condition = cli_text(job, "condition");
    if (strcmp(cli_text(job, "status"), "FINISHED") == 0)
        return 0;
    if (is_of_command(condition) && json_is_integer(code))
        return (int)json_integer_value(code);
    if (is_of_command(condition) && json_is_integer(signo))
        return 128 + (int)json_integer_value(signo);
    return failure_status(job);
}
