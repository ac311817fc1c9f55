/* SPDX-License-Identifier: MIT */
#include "common/base/log.h"

#include "common/base/buf.h"
#include "common/base/clock.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <unistd.h>

#define LOG_LINE_MAX ((size_t)16 * 1024)
#define LOG_REQUEST_MAX 64

static const char *const level_names[] = {"debug", "info", "warn", "error"};

static _Atomic int log_least = LOG_INFO;
static _Atomic int log_fd = STDOUT_FILENO;
static _Atomic(const char *) log_service = "sluice";
static _Thread_local char request_of_thread[LOG_REQUEST_MAX];

static void add_field(struct buf *line, const struct log_field *field)
{
    buf_add_text(line, ",");
    buf_add_json_string(line, sv_of(field->key));
    buf_add_text(line, ":");
    switch (field->type) {
    case LOG_IS_TEXT:
        if (field->text)
            buf_add_json_string(line, sv_of(field->text));
        else
            buf_add_text(line, "null");
        return;
    case LOG_IS_VIEW:
        buf_add_json_string(line, field->view);
        return;
    case LOG_IS_UNSIGNED:
        buf_addf(line, "%llu", (unsigned long long)field->number);
        return;
    case LOG_IS_SIGNED:
        buf_addf(line, "%lld", (long long)field->signed_number);
        return;
    case LOG_IS_BOOL:
        buf_add_text(line, field->flag ? "true" : "false");
        return;
    }
}

static void write_line(struct buf *line)
{
    if (line->failed) /* too long a line is cut to what a reader needs to find its source */
        buf_clear(line),
            buf_add_text(line, "{\"level\":\"error\",\"event\":\"log.line.too_long\"}");
    buf_add_text(line, "\n");
    const char *at = line->ptr;
    size_t left = line->len;
    while (at && left > 0) {
        ssize_t done = write(log_fd, at, left);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return; /* nobody reads the log: nothing useful can be done about it here */
        at += done;
        left -= (size_t)done;
    }
}

void log_event_list(enum log_level level, const char *name, ...)
{
    if ((int)level < atomic_load_explicit(&log_least, memory_order_relaxed))
        return;
    BUF_AUTO struct buf line = BUF_INIT(LOG_LINE_MAX);
    char now[CLOCK_TEXT_SIZE];
    clock_rfc3339(clock_wall_us(), now);
    buf_addf(&line,
             "{\"time\":\"%s\",\"level\":\"%s\",\"service\":\"%s\",\"pid\":%d,\"event\":", now,
             level_names[level], log_service, (int)getpid());
    buf_add_json_string(&line, sv_of(name));
    if (request_of_thread[0])
        add_field(&line, &LOG_S("request", request_of_thread));
    va_list args;
    va_start(args, name);
    for (;;) {
        struct log_field field = va_arg(args, struct log_field);
        if (!field.key)
            break;
        add_field(&line, &field);
    }
    va_end(args);
    buf_add_text(&line, "}");
    write_line(&line);
}

void log_err(const char *name, const struct err *err)
{
    log_event(LOG_ERROR, name, LOG_S("code", err_name(err->code)), LOG_S("detail", err->text),
              LOG_S("pointer", err->pointer));
}

void log_open(const char *service, int fd, enum log_level least)
{
    log_service = service;
    log_fd = fd;
    log_least = (int)least;
}

void log_set_level(enum log_level least)
{
    log_least = (int)least;
}

bool log_level_parse(struct sv text, enum log_level *ret_level)
{
    for (size_t i = 0; i < ARRAY_LEN(level_names); i++) {
        if (sv_is(text, level_names[i])) {
            *ret_level = (enum log_level)i;
            return true;
        }
    }
    return false;
}

void log_set_request(const char *request_id)
{
    (void)snprintf(request_of_thread, sizeof(request_of_thread), "%s",
                   request_id ? request_id : "");
}

const char *log_request(void)
{
    return request_of_thread;
}
