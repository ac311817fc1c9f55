/* SPDX-License-Identifier: MIT */
#include "common/base/fault.h"

#ifdef SLUICE_FAULTS

#include "common/base/log.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#define FAULT_POINTS_MAX 16

struct point {
    char name[64];
    char action[16];
    uint64_t argument;
    uint64_t at_pass; /* 0: every pass */
    _Atomic uint64_t passes;
};

static struct point points[FAULT_POINTS_MAX];
static size_t point_count;
static pthread_once_t parsed = PTHREAD_ONCE_INIT;

/* NAME=ACTION[:ARGUMENT][@N] */
static void parse_point(struct sv text)
{
    struct point *point = &points[point_count];
    const char *equals = text.len ? memchr(text.ptr, '=', text.len) : NULL;
    if (!equals || point_count == FAULT_POINTS_MAX)
        return;
    struct sv name = {text.ptr, (size_t)(equals - text.ptr)};
    struct sv action = {equals + 1, text.len - name.len - 1};
    const char *mark = action.len ? memchr(action.ptr, '@', action.len) : NULL;
    if (mark) {
        struct sv pass = {mark + 1, action.len - (size_t)(mark - action.ptr) - 1};
        if (!sv_u64(pass, UINT32_MAX, &point->at_pass))
            return;
        action.len = (size_t)(mark - action.ptr);
    }
    mark = action.len ? memchr(action.ptr, ':', action.len) : NULL;
    if (mark) {
        struct sv argument = {mark + 1, action.len - (size_t)(mark - action.ptr) - 1};
        if (!sv_u64(argument, 3600000, &point->argument))
            return;
        action.len = (size_t)(mark - action.ptr);
    }
    if (sv_copy(name, point->name, sizeof(point->name)) &&
        sv_copy(action, point->action, sizeof(point->action)))
        point_count++;
}

static void parse_text(const char *at)
{
    while (at && *at) {
        size_t length = strcspn(at, ";");
        parse_point((struct sv){at, length});
        at += length + (at[length] == ';');
    }
}

static void parse_all(void)
{
    parse_text(getenv("SLUICE_FAULT")); /* NOLINT(concurrency-mt-unsafe): nobody sets it */
}

void fault_arm(const char *text)
{
    (void)pthread_once(&parsed, parse_all);
    memset(points, 0, sizeof(points));
    point_count = 0;
    parse_text(text);
}

static bool act(const struct point *point, uint64_t pass)
{
    log_event(LOG_WARN, "fault.injected", LOG_S("point", point->name),
              LOG_S("action", point->action), LOG_U("pass", pass));
    if (strcmp(point->action, "kill") == 0)
        (void)kill(getpid(), SIGKILL);
    else if (strcmp(point->action, "stop") == 0)
        (void)raise(SIGSTOP); /* kill() may choose another thread, and this one would run on */
    else if (strcmp(point->action, "sleep") == 0)
        (void)usleep((useconds_t)(point->argument * 1000));
    return strcmp(point->action, "fail") == 0;
}

bool fault_hit(const char *name)
{
    (void)pthread_once(&parsed, parse_all);
    for (size_t i = 0; i < point_count; i++) {
        if (strcmp(points[i].name, name) != 0)
            continue;
        uint64_t pass = ++points[i].passes;
        if (points[i].at_pass == 0 || points[i].at_pass == pass)
            return act(&points[i], pass);
    }
    return false;
}

#else
typedef int fault_not_compiled_in;
#endif
