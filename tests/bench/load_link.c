/* SPDX-License-Identifier: MIT */
#include "tests/bench/load_link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWER_MAX = 4 << 20, ANSWER_START = 16384, HEAD_MAX = 8192, NUMBER_DIGITS = 8 };

static const char number_mark[] = "@NUMBER@"; /* as long as the number */

struct load_link {
    const struct load_target *target;
    int fd;
    char *request;
    size_t request_size;
    size_t body_at;
    char *answer; /* grows; ends in a 0 byte */
    size_t answer_room;
};

static int open_socket(uint16_t port)
{
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(port)};
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0)
        return -1;
    if (connect(fd, (const struct sockaddr *)&there, sizeof(there)) != 0) {
        (void)close(fd);
        return -1;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

static bool make_request(struct load_link *link, const char *token)
{
    const struct load_target *target = link->target;
    link->request = malloc(HEAD_MAX + target->body_size);
    if (!link->request)
        return false;
    int size =
        snprintf(link->request, HEAD_MAX,
                 "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n%s%s%s"
                 "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                 target->method, target->path, target->port, token ? "Authorization: Bearer " : "",
                 token ? token : "", token ? "\r\n" : "", target->body_size);
    if (size < 0 || size >= HEAD_MAX)
        return false;
    link->body_at = (size_t)size;
    link->request_size = link->body_at + target->body_size;
    if (target->body)
        memcpy(link->request + link->body_at, target->body, target->body_size);
    return true;
}

struct load_link *load_link_new(const struct load_target *target, const char *token)
{
    struct load_link *link = calloc(1, sizeof(*link));
    if (!link)
        return NULL;
    link->target = target;
    link->answer_room = ANSWER_START;
    link->answer = malloc(link->answer_room);
    link->fd = open_socket(target->port);
    if (link->fd < 0 || !link->answer || !make_request(link, token)) {
        load_link_free(link);
        return NULL;
    }
    return link;
}

void load_link_free(struct load_link *link)
{
    if (!link)
        return;
    if (link->fd >= 0)
        (void)close(link->fd);
    free(link->request);
    free(link->answer);
    free(link);
}

static bool send_request(struct load_link *link)
{
    size_t sent = 0;
    while (sent < link->request_size) {
        ssize_t count =
            send(link->fd, link->request + sent, link->request_size - sent, MSG_NOSIGNAL);
        if (count < 0 && errno != EINTR)
            return false;
        if (count > 0)
            sent += (size_t)count;
    }
    return true;
}

/* Makes room for what is still to come; false: too large. */
static bool grow(struct load_link *link, size_t size)
{
    if (size + 1 < link->answer_room)
        return true;
    size_t room = link->answer_room * 2;
    char *more = room <= ANSWER_MAX ? realloc(link->answer, room) : NULL;
    if (!more)
        return false;
    link->answer = more;
    link->answer_room = room;
    return true;
}

static size_t body_size(const char *head)
{
    const char *at = strcasestr(head, "\r\nContent-Length:");
    return at ? (size_t)strtoull(at + strlen("\r\nContent-Length:"), NULL, 10) : 0;
}

/* Reads the head and as many bytes after it as it tells of. */
static bool read_answer(struct load_link *link)
{
    size_t size = 0, whole = 0;
    while (whole == 0 || size < whole) {
        if (!grow(link, size))
            return false;
        ssize_t count = recv(link->fd, link->answer + size, link->answer_room - size - 1, 0);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        size += (size_t)count;
        link->answer[size] = '\0';
        const char *end = whole == 0 ? strstr(link->answer, "\r\n\r\n") : NULL;
        if (end)
            whole = (size_t)(end - link->answer) + 4 + body_size(link->answer);
    }
    return true;
}

static void copy_id(const char *answer, char *ret_id)
{
    const char *at = strstr(answer, "\"id\"");
    const char *from = at ? strchr(at + 4, '"') : NULL;
    const char *to = from ? strchr(from + 1, '"') : NULL;
    if (!to || to - from > LOAD_ID_SIZE)
        return;
    memcpy(ret_id, from + 1, (size_t)(to - from - 1));
    ret_id[to - from - 1] = '\0';
}

static void put_number(struct load_link *link, uint64_t number)
{
    char digits[32];
    const char *end = link->target->body + link->target->body_size;
    if (!link->target->body)
        return;
    (void)snprintf(digits, sizeof(digits), "%0*" PRIu64, NUMBER_DIGITS, number);
    for (const char *at = link->target->body; (at = strstr(at, number_mark)) && at < end;
         at += NUMBER_DIGITS)
        memcpy(link->request + link->body_at + (at - link->target->body), digits, NUMBER_DIGITS);
}

void load_link_call(struct load_link *link, uint64_t number, struct load_record *record)
{
    record->sent_ns = load_now_ns();
    if (link->fd < 0)
        link->fd = open_socket(link->target->port);
    put_number(link, number);
    if (link->fd >= 0 && send_request(link) && read_answer(link)) {
        record->status = (unsigned)strtoul(link->answer + strlen("HTTP/1.1 "), NULL, 10);
        copy_id(link->answer, record->id);
        if (strcasestr(link->answer, "\r\nConnection: close")) {
            (void)close(link->fd);
            link->fd = -1;
        }
    } else if (link->fd >= 0) {
        (void)close(link->fd);
        link->fd = -1;
    }
    record->done_ns = load_now_ns();
}
