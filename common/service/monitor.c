/* SPDX-License-Identifier: MIT */
#include "common/service/monitor.h"

#include "common/service/metrics.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>

#define MONITOR_CONNECTIONS 16
#define MONITOR_TIMEOUT_S 5
#define MONITOR_BODY_MAX ((size_t)1024 * 1024)

struct monitor {
    struct monitor_config cfg;
    struct MHD_Daemon *daemon;
};

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *type,
                              struct buf *body)
{
    size_t length = body->len;
    char *bytes = buf_take(body);
    if (!bytes)
        return MHD_NO;
    struct MHD_Response *response =
        MHD_create_response_from_buffer(length, bytes, MHD_RESPMEM_MUST_FREE);
    if (!response) {
        free(bytes);
        return MHD_NO;
    }
    (void)MHD_add_response_header(response, "Content-Type", type);
    (void)MHD_add_response_header(response, "Cache-Control", "no-store");
    enum MHD_Result rc = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return rc;
}

static unsigned write_ready(const struct monitor *monitor, struct buf *body)
{
    BUF_AUTO struct buf reasons = BUF_INIT(4096);
    bool ready = monitor->cfg.ready(monitor->cfg.arg, &reasons);
    buf_addf(body, "{\"ready\":%s%s%s}\n", ready ? "true" : "false", reasons.len ? "," : "",
             buf_text(&reasons));
    return ready ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE;
}

/* NOLINTNEXTLINE(readability-function-size): the parameters are the library's */
static enum MHD_Result handle(void *arg, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **request)
{
    static int seen;
    const struct monitor *monitor = arg;
    BUF_AUTO struct buf body = BUF_INIT(MONITOR_BODY_MAX);
    (void)version;
    (void)upload;
    if (!*request) { /* the headers have come; the answer follows at the end of the request */
        *request = &seen;
        return MHD_YES;
    }
    if (*upload_size > 0) {
        *upload_size = 0;
        return MHD_YES;
    }
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
        buf_add_text(&body, "{\"detail\":\"only GET is served here\"}\n");
        return answer(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "application/problem+json", &body);
    }
    if (strcmp(url, "/metrics") == 0) {
        (void)metrics_write(&body, monitor->cfg.service);
        return answer(connection, MHD_HTTP_OK, "text/plain; version=0.0.4", &body);
    }
    if (strcmp(url, "/livez") == 0) {
        buf_add_text(&body, "{\"live\":true}\n");
        return answer(connection, MHD_HTTP_OK, "application/json", &body);
    }
    if (strcmp(url, "/readyz") == 0) {
        unsigned status = write_ready(monitor, &body);
        return answer(connection, status, "application/json", &body);
    }
    buf_add_text(&body, "{\"detail\":\"/livez, /readyz and /metrics are here\"}\n");
    return answer(connection, MHD_HTTP_NOT_FOUND, "application/problem+json", &body);
}

enum err_code monitor_start(const struct monitor_config *cfg, struct monitor **ret_monitor,
                            struct err *err)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(cfg->port)};
    if (inet_pton(AF_INET, cfg->listen, &address.sin_addr) != 1)
        return err_set(err, ERR_CONFIG, "'%s' is not an IPv4 address to listen on", cfg->listen);
    AUTO(monitor_stop) struct monitor *monitor = calloc(1, sizeof(*monitor));
    if (!monitor)
        return err_set(err, ERR_NOMEM, "no memory for a listener");
    monitor->cfg = *cfg;
    monitor->daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, handle, monitor, MHD_OPTION_SOCK_ADDR,
        (const struct sockaddr *)&address, MHD_OPTION_CONNECTION_LIMIT, MONITOR_CONNECTIONS,
        MHD_OPTION_CONNECTION_TIMEOUT, MONITOR_TIMEOUT_S, MHD_OPTION_END);
    const char *section = strchr(cfg->service, '-');
    section = section ? section + 1 : cfg->service;
    if (!monitor->daemon)
        return err_set_errno(err, ERR_IO, errno,
                             "cannot listen on %s port %u (%s.monitor_listen, %s.monitor_port; 'ss "
                             "-ltnp' shows who does)",
                             cfg->listen, cfg->port, section, section);
    *ret_monitor = TAKE(monitor);
    return ERR_OK;
}

uint16_t monitor_port(const struct monitor *monitor)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(monitor->daemon, MHD_DAEMON_INFO_BIND_PORT);
    return info ? info->port : 0;
}

void monitor_stop(struct monitor *monitor)
{
    if (!monitor)
        return;
    if (monitor->daemon)
        MHD_stop_daemon(monitor->daemon);
    free(monitor);
}
