/* SPDX-License-Identifier: MIT */
#include "webapp/route.h"

#include "webapp/handlers.h"

/* Each becomes a part of a row of the table. */
/* NOLINTBEGIN(bugprone-macro-parentheses) */
#define LEAST_PUBLIC .is_public = true
#define LEAST_VIEWER .least = ROLE_VIEWER
#define LEAST_USER .least = ROLE_USER
#define LEAST_OPERATOR .least = ROLE_OPERATOR
#define LEAST_ADMIN .least = ROLE_ADMIN
#define ROLE_PUBLIC ROLE_VIEWER

const struct route routes[ROUTE_COUNT] = {
#define ROUTE(fn, verb, role, other, takes, gives, pattern, params, text)                          \
    [ROUTE_##fn] = {                                                                               \
        .id = ROUTE_##fn,                                                                          \
        .name = #fn,                                                                               \
        .handler = fn,                                                                             \
        .method = METHOD_##verb,                                                                   \
        LEAST_##role,                                                                              \
        .others = ROLE_##other,                                                                    \
        .body = #takes,                                                                            \
        .body_id = BODY_##takes,                                                                   \
        .answer = #gives,                                                                          \
        .path = pattern,                                                                           \
        .query = params,                                                                           \
        .summary = text,                                                                           \
    },
#include "webapp/routes.def"
#undef ROUTE
};
/* NOLINTEND(bugprone-macro-parentheses) */

static const char *const method_texts[] = {"GET", "PUT", "POST", "DELETE"};

const char *method_text(enum method method)
{
    return method_texts[method];
}

bool route_has_body(const struct route *route)
{
    return strcmp(route->body, "NONE") != 0;
}

uint64_t route_body_max(const struct route *route, uint64_t site_max)
{
    static const uint64_t most[] = {
#define WHOLE UINT64_MAX
#define SMALL ((uint64_t)64 * 1024)
#define BODY(schema, bytes) [BODY_##schema] = (bytes),
#include "webapp/body.def"
#undef BODY
    };
    return most[route->body_id] < site_max ? most[route->body_id] : site_max;
}

bool route_takes_bytes(const struct route *route)
{
    return strstr(route->path, "...}") != NULL;
}

/* The next part of a pattern; false at its end. */
static bool next_part(const char **at, struct sv *ret_part)
{
    if (**at != '/')
        return false;
    const char *start = *at + 1;
    *ret_part = (struct sv){start, strcspn(start, "/")};
    *at = start + ret_part->len;
    return true;
}

/* What "{id}", "{id}:verb" or "{path...}" takes of a part of the path; empty: it does not match. */
static struct sv taken_by(struct sv part, struct sv segment)
{
    const char *end = memchr(part.ptr, '}', part.len);
    struct sv verb = end ? (struct sv){end + 1, (size_t)(part.ptr + part.len - end - 1)} : SV("");
    if (segment.len <= verb.len ||
        !sv_eq((struct sv){segment.ptr + segment.len - verb.len, verb.len}, verb))
        return SV("");
    return (struct sv){segment.ptr, segment.len - verb.len};
}

/* "{id}" takes one part that is not empty, "{path...}" all that are left. */
static bool path_matches(const struct route *route, const struct uri *uri,
                         struct route_match *match)
{
    const char *at = route->path;
    struct sv part;
    size_t taken = 0;
    size_t i = 0;
    for (; next_part(&at, &part); i++) {
        if (i >= uri->segment_count)
            return false;
        struct sv segment = uri->segments[i];
        if (part.ptr[0] != '{') {
            if (!sv_eq(part, segment))
                return false;
            continue;
        }
        segment = taken_by(part, segment);
        if (segment.len == 0)
            return false;
        match->params[taken++] = segment;
        if (part.ptr[part.len - 2] == '.') {
            match->rest_at = i;
            return true;
        }
    }
    return i == uri->segment_count;
}

static void allow(struct route_match *match, enum method method)
{
    size_t used = strlen(match->allow);
    (void)snprintf(match->allow + used, sizeof(match->allow) - used, "%s%s%s", used ? ", " : "",
                   method_text(method), method == METHOD_GET ? ", HEAD" : "");
}

void route_find(const struct uri *uri, const char *method, struct route_match *ret_match)
{
    *ret_match = (struct route_match){0};
    const char *wanted = strcmp(method, "HEAD") == 0 ? "GET" : method;
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        struct route_match match = {0};
        if (!path_matches(&routes[i], uri, &match))
            continue;
        allow(ret_match, routes[i].method);
        if (strcmp(wanted, method_text(routes[i].method)) != 0)
            continue;
        ret_match->route = &routes[i];
        ret_match->rest_at = match.rest_at;
        memcpy(ret_match->params, match.params, sizeof(match.params));
    }
    if (ret_match->allow[0]) {
        size_t used = strlen(ret_match->allow);
        (void)snprintf(ret_match->allow + used, sizeof(ret_match->allow) - used, ", OPTIONS");
    }
}

bool route_takes(const struct route *route, struct sv name)
{
    const char *at = route->query;
    while (*at) {
        struct sv word = {at, strcspn(at, " ")};
        if (sv_eq(word, name))
            return true;
        at += word.len + (at[word.len] == ' ');
    }
    return false;
}
