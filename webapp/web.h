/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_WEB_H
#define WEBAPP_WEB_H

/* web: what all handlers of this process share. Built by main.c before the server takes requests,
 * and taken apart after the last one. Threads: immutable; each part looks after itself. */

#include "common/auth/auth.h"
#include "common/base/address.h"
#include "common/bus/consumer.h"
#include "common/bus/publisher.h"
#include "common/config/config.h"
#include "common/service/outbox.h"
#include "common/service/submitter.h"
#include "common/store/store.h"
#include "webapp/cursor.h"
#include "webapp/router.h"
#include "webapp/server.h"

struct allowances;
struct auditor;
struct waiters;
struct followers;
struct listeners;
struct presence;
struct sweeper;
struct probe;
struct shares;
struct ui;

struct web {
    struct config *cfg;
    struct store *store;
    struct auth *auth;
    struct bus_publisher *pub;
    struct bus_consumer *events; /* tells when jobs end */
    struct outbox *outbox;
    struct submitter *submitter;
    struct router *router;
    struct waiters *waiters;
    struct followers *followers;
    struct listeners *listeners;
    struct sweeper *sweeper;
    struct presence *presence;
    struct probe *probe;
    struct auditor *auditor;
    struct shares *users;
    struct allowances *allowances;
    struct ui *ui;
    struct server *server;
    struct cursor_key cursor_key;
    struct address_nets hook_networks; /* not public, but allowed to webhooks */
    int archive_fd;                    /* the archive root */
};

/* web_metrics.c */
void web_metrics_start(struct web *web);
void web_count_request(struct web *web, const struct route *route, unsigned status,
                       int64_t took_ms);
void web_count_limited(bool is_user); /* a request past the share of a user, or an address */
void web_count_submit_us(int64_t took_us);
void web_request_sent(const struct request *req); /* the answer has left */

#endif
