/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_ROUTE_H
#define WEBAPP_ROUTE_H

/* route: which handler a method and a path belong to. Rows are in routes.def.
 * Threads: immutable. Memory: static. */

#include "common/auth/auth.h"
#include "webapp/uri.h"

struct request;

/* Writes req->reply, or returns an error (which becomes a problem document), or REQUEST_PARKED. */
typedef enum err_code route_fn(struct request *req, struct err *err);

enum method { METHOD_GET, METHOD_PUT, METHOD_POST, METHOD_DELETE, METHOD_COUNT };

enum route_id {
#define ROUTE(handler, ...) ROUTE_##handler,
#include "webapp/routes.def"
#undef ROUTE
    ROUTE_COUNT
};

enum body_id {
#define BODY(schema, bytes) BODY_##schema,
#include "webapp/body.def"
#undef BODY
};

struct route {
    enum route_id id;
    const char *name;
    route_fn *handler;
    enum method method;
    bool is_public;
    enum role least;
    enum role others; /* least role to act on the job of somebody else */
    const char *body; /* name of its schema, or "NONE" */
    enum body_id body_id;
    const char *answer; /* name of its schema */
    const char *path;
    const char *query; /* names, separated by blanks */
    const char *summary;
};
extern const struct route routes[ROUTE_COUNT];

#define ROUTE_PARAMS_MAX 4
#define ROUTE_ALLOW_SIZE 64

struct route_match {
    const struct route *route; /* NULL: none */
    struct sv params[ROUTE_PARAMS_MAX];
    size_t rest_at;               /* segment at which {path...} begins, if the pattern has one */
    char allow[ROUTE_ALLOW_SIZE]; /* methods that the path knows: "GET, HEAD"; "" if none */
};

/* HEAD is found as GET. ret_match->allow is written in any case. */
void route_find(const struct uri *uri, const char *method, struct route_match *ret_match);
const char *method_text(enum method method);
bool route_has_body(const struct route *route);
/* Largest body in bytes; site_max: web.body_max_bytes, which is above all. */
uint64_t route_body_max(const struct route *route, uint64_t site_max);
/* The path ends in the name of a file, which need not be UTF-8. */
bool route_takes_bytes(const struct route *route);
/* The route knows a query parameter of this name. */
bool route_takes(const struct route *route, struct sv name);

#endif
