/* SPDX-License-Identifier: MIT */
/* echo: answers each POST with 201 and what it sent, by libmicrohttpd alone; the limit of whatever
 * serves REST. Prints its port and ends when its stdin does. */

#include <microhttpd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BODY_MAX = 4096, THREADS = 2 };

struct body {
    size_t size;
    char bytes[BODY_MAX];
};

static enum MHD_Result answer(void *unused, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *data,
                              size_t *data_size, void **state)
{
    struct body *body = *state;
    (void)unused;
    (void)url;
    (void)method;
    (void)version;
    if (!body) {
        *state = calloc(1, sizeof(*body));
        return *state ? MHD_YES : MHD_NO;
    }
    if (*data_size > 0) {
        size_t room = BODY_MAX - body->size;
        size_t size = *data_size < room ? *data_size : room;
        memcpy(body->bytes + body->size, data, size);
        body->size += size;
        *data_size = 0;
        return MHD_YES;
    }
    struct MHD_Response *response =
        MHD_create_response_from_buffer(body->size, body->bytes, MHD_RESPMEM_MUST_COPY);
    enum MHD_Result result = MHD_queue_response(connection, MHD_HTTP_CREATED, response);
    MHD_destroy_response(response);
    return result;
}

static void completed(void *unused, struct MHD_Connection *connection, void **state,
                      enum MHD_RequestTerminationCode code)
{
    (void)unused;
    (void)connection;
    (void)code;
    free(*state);
    *state = NULL;
}

int main(void)
{
    char byte;
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, answer, NULL, MHD_OPTION_THREAD_POOL_SIZE,
        (unsigned)THREADS, MHD_OPTION_NOTIFY_COMPLETED, completed, NULL, MHD_OPTION_END);
    const union MHD_DaemonInfo *port =
        daemon ? MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT) : NULL;
    if (!port) {
        fprintf(stderr, "echo: does not start\n");
        return 1;
    }
    printf("%u\n", port->port);
    (void)fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
    MHD_stop_daemon(daemon);
    return 0;
}
