/* SPDX-License-Identifier: MIT */
/* Our own programs: their environment, start, status and end. */

#include "cli/dev/stack.h"

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/user.h"

#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <unistd.h>

#define READY_MS 60000
#define READY_STEP_MS 50
#define STOP_MS 20000
#define ENV_ROWS 24
#define ENV_SIZE (STACK_PATH_SIZE + 64)

struct environment {
    char text[ENV_ROWS][ENV_SIZE];
    const char *rows[ENV_ROWS + 1];
    size_t count;
};

static void add(struct environment *env, const char *format, ...) PRINTF_LIKE(2, 3);

static void add(struct environment *env, const char *format, ...)
{
    va_list args;
    if (env->count == ENV_ROWS)
        return;
    va_start(args, format);
    (void)vsnprintf(env->text[env->count], ENV_SIZE, format, args);
    va_end(args);
    env->rows[env->count] = env->text[env->count];
    env->rows[++env->count] = NULL;
}

/* Secrets go as files: an environment can be read by whoever may look at the process. */
static void add_servers(struct environment *env, const struct stack *stack, const char *account)
{
    add(env, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    add(env, "HOME=%s", stack->state);
    add(env, "SLUICE_DB_PORT=%u", stack->children[CHILD_MARIADB].port);
    add(env, "SLUICE_DB_USER=sluice_%s", account);
    add(env, "SLUICE_DB_PASSWORD_FILE=%s/secrets/db_%s", stack->state, account);
    add(env, "SLUICE_AMQP_PORT=%u", stack->children[CHILD_RABBITMQ].port);
    add(env, "SLUICE_AMQP_PASSWORD_FILE=%s/secrets/amqp_password", stack->state);
    add(env, "SLUICE_ARCHIVE_ROOT=%s/archive", stack->state);
    add(env, "SLUICE_WEBHOOK_ALLOW_NETWORKS=127.0.0.0/8,::1"); /* receivers that one tries out */
}

bool stack_jobs_stay_root(const struct stack *stack)
{
    struct user nobody;
    struct err ignored = {0};
    return geteuid() == 0 && (user_find("nobody", &nobody, &ignored) != ERR_OK ||
                              user_may_enter(&nobody, stack->state, &ignored) != ERR_OK);
}

static void add_worker(struct environment *env, const struct stack *stack, const char *queue,
                       unsigned slots)
{
    add(env, "SLUICE_WORKER_TENANT=" DEV_TENANT);
    add(env, "SLUICE_WORKER_QUEUE=%s", queue);
    add(env, "SLUICE_WORKER_NAME=%s", queue);
    add(env, "SLUICE_WORKER_SLOTS=%u", slots);
    add(env, "SLUICE_WORKER_WORK_ROOT=%s/work", stack->state);
    add(env, "SLUICE_WORKER_DENY_PATHS=%s", stack->state);
    if (stack_jobs_stay_root(stack))
        add(env, "SLUICE_WORKER_JOB_USER=root");
    add(env, "SLUICE_WORKER_DRAIN_MS=2000");
    add(env, "SLUICE_DB_POOL_SIZE=8");
}

static const struct {
    const char *program;
    const char *account; /* of stack_accounts */
    const char *section; /* of the settings: where its monitor's port stands */
    const char *queue;   /* a worker's */
    unsigned slots;
} programs[CHILD_COUNT] = {
    [CHILD_WEB] = {.program = "sluice-web", .account = "web"},
    [CHILD_WORKER_DEFAULT] = {"sluice-worker", "worker", "WORKER", "default", 4},
    [CHILD_WORKER_QUICK] = {"sluice-worker", "worker", "WORKER", "quick", 4},
    [CHILD_WORKER_LONG] = {"sluice-worker", "worker", "WORKER", "long", 2},
    [CHILD_RECOVERY] = {"sluice-recovery", "recovery", "RECOVERY", NULL, 0},
    [CHILD_ALTERNATE] = {"sluice-alternate", "reader", "ALTERNATE", NULL, 0},
    [CHILD_DEADLETTER] = {"sluice-deadletter", "reader", "DEADLETTER", NULL, 0},
    [CHILD_WEBHOOK] = {"sluice-webhook", "webhook", "WEBHOOK", NULL, 0},
};

enum err_code stack_start_program(struct stack *stack, enum stack_child which, struct err *err)
{
    struct child *child = &stack->children[which];
    char program[STACK_PATH_SIZE + 32];
    struct environment env = {.count = 0};
    (void)snprintf(program, sizeof(program), "%s/%s", stack->bin, programs[which].program);
    add_servers(&env, stack, programs[which].account);
    if (which == CHILD_WEB) {
        add(&env, "SLUICE_WEB_PORT=%u", child->port);
        add(&env, "SLUICE_AUTH_KEYS_DIR=%s/keys", stack->state);
    } else {
        add(&env, "SLUICE_%s_MONITOR_PORT=%u", programs[which].section, child->port);
    }
    if (programs[which].queue)
        add_worker(&env, stack, programs[which].queue, programs[which].slots);
    const char *const argv[] = {program, NULL};
    struct child_start start = {
        .argv = argv, .env = env.rows, .folder = stack->state, .log_dir = stack->log_dir};
    return child_start(child, &start, err);
}

static bool is_ready(const struct child *child)
{
    char url[64];
    struct err ignored = {0};
    struct http *http = NULL;
    struct http_request request = {.method = "GET", .path = "/readyz"};
    HTTP_ANSWER_AUTO struct http_answer answer = {0};
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u", child->port);
    if (http_open(url, "", 2000, &http, &ignored))
        return false;
    bool ready = http_send(http, &request, &answer, &ignored) == ERR_OK && answer.status == 200;
    http_free(http);
    return ready;
}

static enum err_code wait_ready(struct stack *stack, struct child *child, struct err *err)
{
    int64_t deadline = clock_mono_ms() + READY_MS;
    while (!is_ready(child)) {
        (void)child_reap(stack->children, CHILD_COUNT);
        if (!child_runs(child))
            return err_set(err, ERR_IO, "%s ended early; %s/log/%s.log tells why", child->name,
                           stack->state, child->name);
        if (clock_mono_ms() >= deadline)
            return err_set(err, ERR_TIMEOUT, "%s is not ready after %d ms; %s/log/%s.log tells why",
                           child->name, READY_MS, stack->state, child->name);
        (void)poll(NULL, 0, READY_STEP_MS);
    }
    return ERR_OK;
}

enum err_code stack_start_programs(struct stack *stack, struct err *err)
{
    enum err_code rc = ERR_OK;
    stack->progress("starting sluice-web, the workers and the readers");
    for (int i = CHILD_WEB; i < CHILD_COUNT && rc == ERR_OK; i++)
        rc = stack_start_program(stack, (enum stack_child)i, err);
    for (int i = CHILD_WEB; i < CHILD_COUNT && rc == ERR_OK; i++)
        rc = wait_ready(stack, &stack->children[i], err);
    return rc;
}

static void add_process(json_t *processes, const char *name, pid_t pid, uint16_t port)
{
    json_t *process = json_object();
    (void)json_object_set_new(process, "name", json_string(name));
    (void)json_object_set_new(process, "pid", pid > 0 ? json_integer(pid) : json_null());
    if (port)
        (void)json_object_set_new(process, "port", json_integer(port));
    (void)json_array_append_new(processes, process);
}

enum err_code stack_write_status(const struct stack *stack, bool ready, struct err *err)
{
    pid_t orphans[64];
    json_t *processes = json_array();
    add_process(processes, "sluice-dev", getpid(), 0);
    for (size_t i = 0; i < CHILD_COUNT; i++)
        add_process(processes, stack->children[i].name, stack->children[i].pid,
                    stack->children[i].port);
    /* the runners outlive their workers, and so they are handed to us */
    size_t count = child_orphans(stack->children, CHILD_COUNT, orphans, ARRAY_LEN(orphans));
    for (size_t i = 0; i < count; i++)
        add_process(processes, "sluice-runner", orphans[i], 0);
    CLI_JSON_AUTO json_t *status =
        json_pack("{s:b, s:s, s:o}", "ready", ready, "url", stack->url, "processes", processes);
    TEXT_AUTO char *text = status ? json_dumps(status, JSON_INDENT(2)) : NULL;
    if (!text)
        return err_set(err, ERR_NOMEM, "no memory for the status");
    return fs_write_sync(stack->state_dir, "dev.json", sv_of(text), 0600, err);
}

void stack_stop(struct stack *stack)
{
    for (int i = CHILD_WORKER_DEFAULT; i < CHILD_COUNT; i++) {
        if (stack->children[i].pid > 0)
            (void)kill(stack->children[i].pid, SIGTERM);
    }
    for (int i = CHILD_WORKER_DEFAULT; i < CHILD_COUNT; i++)
        child_end(&stack->children[i], SIGTERM, STOP_MS);
    child_end(&stack->children[CHILD_WEB], SIGTERM, STOP_MS);
    child_end_orphans(stack->children, CHILD_COUNT, STOP_MS / 2);
    child_end(&stack->children[CHILD_RABBITMQ], SIGTERM, STOP_MS);
    child_end(&stack->children[CHILD_MARIADB], SIGTERM, STOP_MS);
    child_end(&stack->children[CHILD_EPMD], SIGTERM, STOP_MS / 2);
    child_end_orphans(stack->children, CHILD_COUNT, STOP_MS / 2);
}
