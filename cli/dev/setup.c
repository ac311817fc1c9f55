/* SPDX-License-Identifier: MIT */
/* What a fresh state folder needs: secrets, ports, schema, keys, a token, sample queues. */

#include "cli/dev/stack.h"

#include "cli/contexts.h"
#include "cli/profile.h"
#include "common/auth/auth_sign.h"
#include "common/base/fs.h"
#include "common/base/log.h"
#include "common/base/uuid.h"
#include "common/store/account.h"
#include "common/store/migrate.h"

#include <errno.h>
#include <sys/stat.h>

#define TOKEN_DAYS 30
const char *const stack_accounts[STACK_ACCOUNTS + 1] = {"web",    "worker",  "recovery",
                                                        "reader", "webhook", NULL};

#define DEV_KEYS "keys/" DEV_TENANT

/* The secret in secrets/NAME, made at the first call. */
static enum err_code keep_secret(const struct stack *stack, const char *name, char *ret_text,
                                 struct err *err)
{
    static const char hex[] = "0123456789abcdef";
    FD_AUTO int dir = -1;
    enum err_code rc = fs_make_dirs(stack->state_dir, "secrets", 0700, &dir, err);
    if (rc)
        return rc;
    BUF_AUTO struct buf text = BUF_INIT(STACK_SECRET_SIZE - 1);
    struct err missing = {0};
    if (fs_read(dir, name, &text, &missing) == ERR_OK && text.len == STACK_SECRET_SIZE - 1) {
        memcpy(ret_text, text.ptr, STACK_SECRET_SIZE);
        return ERR_OK;
    }
    uint8_t bytes[(STACK_SECRET_SIZE - 1) / 2];
    random_bytes(bytes, sizeof(bytes));
    for (size_t i = 0; i < sizeof(bytes); i++) {
        ret_text[2 * i] = hex[bytes[i] >> 4];
        ret_text[2 * i + 1] = hex[bytes[i] & 15];
    }
    ret_text[STACK_SECRET_SIZE - 1] = 0;
    return fs_write_sync(dir, name, sv_of(ret_text), 0600, err);
}

/* The ports of the last time, so that an address that somebody wrote down stays good. */
static void choose_ports(struct stack *stack)
{
    char path[STACK_PATH_SIZE + 16];
    (void)snprintf(path, sizeof(path), "%s/dev.json", stack->state);
    CLI_JSON_AUTO json_t *last = json_load_file(path, 0, NULL);
    const json_t *processes = json_object_get(last, "processes");
    for (size_t i = 0; i < CHILD_COUNT; i++) {
        struct child *child = &stack->children[i];
        size_t row = 0;
        const json_t *process = NULL;
        uint16_t wanted = 0;
        json_array_foreach(processes, row, process)
        {
            if (strcmp(cli_text(process, "name"), child->name) == 0)
                wanted = (uint16_t)json_integer_value(json_object_get(process, "port"));
        }
        child->port = child_free_port(wanted);
    }
    stack->dist_port = child_free_port(0);
}

/* To their own folders, if they have another user than their worker. */
static enum err_code let_jobs_through(const struct stack *stack, struct err *err)
{
    FD_AUTO int work = -1;
    enum err_code rc = fs_make_dirs(stack->state_dir, "work", 0711, &work, err);
    if (rc == ERR_OK && fchmod(work, 0711) != 0)
        rc = err_set_errno(err, ERR_IO, errno, "cannot open %s/work to jobs", stack->state);
    return rc;
}

enum err_code stack_prepare(struct stack *stack, struct err *err)
{
    static const char *const names[CHILD_COUNT] = {
        [CHILD_EPMD] = "epmd",
        [CHILD_MARIADB] = "mariadb",
        [CHILD_RABBITMQ] = "rabbitmq",
        [CHILD_WEB] = "sluice-web",
        [CHILD_WORKER_DEFAULT] = "sluice-worker-default",
        [CHILD_WORKER_QUICK] = "sluice-worker-quick",
        [CHILD_WORKER_LONG] = "sluice-worker-long",
        [CHILD_RECOVERY] = "sluice-recovery",
        [CHILD_ALTERNATE] = "sluice-alternate",
        [CHILD_DEADLETTER] = "sluice-deadletter",
        [CHILD_WEBHOOK] = "sluice-webhook",
    };
    static const char *const folders[] = {DEV_KEYS, "private", "work", "archive"};
    enum err_code rc = ERR_OK;
    for (size_t i = 0; i < CHILD_COUNT; i++) {
        (void)snprintf(stack->children[i].name, sizeof(stack->children[i].name), "%s", names[i]);
        stack->children[i].restart = i >= CHILD_WEB;
    }
    for (size_t i = 0; i < ARRAY_LEN(folders) && rc == ERR_OK; i++)
        rc = fs_make_dirs(stack->state_dir, folders[i], 0700, NULL, err);
    if (rc == ERR_OK)
        rc = let_jobs_through(stack, err);
    if (rc == ERR_OK)
        rc = fs_make_dirs(stack->state_dir, "log", 0700, &stack->log_dir, err);
    if (rc == ERR_OK)
        rc = keep_secret(stack, "db_password", stack->db_password, err);
    for (size_t i = 0; stack_accounts[i] && rc == ERR_OK; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "db_%s", stack_accounts[i]);
        rc = keep_secret(stack, name, stack->db_passwords[i], err);
    }
    if (rc == ERR_OK)
        rc = keep_secret(stack, "amqp_password", stack->amqp_password, err);
    if (rc == ERR_OK)
        rc = keep_secret(stack, "cookie", stack->cookie, err);
    choose_ports(stack);
    (void)snprintf(stack->url, sizeof(stack->url), "http://127.0.0.1:%u",
                   stack->children[CHILD_WEB].port);
    return rc;
}

static enum err_code make_token(const struct stack *stack, char **ret_token, struct err *err)
{
    char keys[AUTH_PATH_SIZE];
    char private_dir[AUTH_PATH_SIZE];
    char path[AUTH_PATH_SIZE];
    AUTH_KEY_AUTO struct auth_private_key key = {0};
    struct err exists = {0};
    (void)snprintf(keys, sizeof(keys), "%s/keys", stack->state);
    (void)snprintf(private_dir, sizeof(private_dir), "%s/private", stack->state);
    struct auth_new_key wanted = {.keys_dir = keys,
                                  .private_dir = private_dir,
                                  .tenant = DEV_TENANT,
                                  .kid = DEV_KID,
                                  .alg = AUTH_RS256};
    enum err_code rc = auth_make_key(&wanted, path, &exists);
    if (rc && rc != ERR_DUPLICATE)
        return err_set(err, rc, "%s", exists.text);
    (void)snprintf(path, sizeof(path), "%s/private/%s.%s.pem", stack->state, DEV_TENANT, DEV_KID);
    rc = auth_key_read(path, &key, err);
    if (rc)
        return rc;
    struct auth_claims claims = {
        .tenant = DEV_TENANT,
        .user = "admin",
        .roles = "admin",
        .tenant_claim = "tenant",
        .roles_claim = "roles",
        .lifetime_s = (int64_t)TOKEN_DAYS * 24 * 3600,
    };
    return auth_sign(&key, DEV_KID, &claims, ret_token, err);
}

/* What the commands that talk to the servers themselves (doctor, audit, migrate), and a worker that
 * is started by hand, need; for SLUICE_CONFIG. */
static enum err_code write_config(const struct stack *stack, struct err *err)
{
    BUF_AUTO struct buf text = BUF_INIT(8192);
    buf_addf(&text, "[db]\nport = %u\npassword = %s\n", stack->children[CHILD_MARIADB].port,
             stack->db_password);
    buf_addf(&text, "[amqp]\nport = %u\npassword = %s\n", stack->children[CHILD_RABBITMQ].port,
             stack->amqp_password);
    buf_addf(&text, "[auth]\nkeys_dir = %s/keys\n", stack->state);
    buf_addf(&text, "[archive]\nroot = %s/archive\n", stack->state);
    buf_addf(&text, "[worker]\nwork_root = %s/work\ndeny_paths = %s\n", stack->state, stack->state);
    if (stack_jobs_stay_root(stack))
        buf_add_text(&text, "job_user = root\n");
    return fs_write_sync(stack->state_dir, "sluice.conf", buf_sv(&text), 0600, err);
}

enum err_code stack_setup(struct stack *stack, char **ret_token, struct err *err)
{
    uint32_t applied = 0;
    struct store_config store = {
        .host = "127.0.0.1",
        .user = "sluice",
        .password = stack->db_password,
        .name = "sluice",
        .tls_ca = "",
        .port = stack->children[CHILD_MARIADB].port,
        .pool_size = 1,
        .connect_timeout_ms = 5000,
        .query_timeout_ms = 60000,
        .acquire_timeout_ms = 5000,
    };
    stack->progress("bringing the schema up to date");
    const struct account_site accounts = {
        .schema = "sluice", .prefix = "sluice_", .host = "127.0.0.1"};
    enum err_code rc = migrate_run(&store, &applied, NULL, err);
    if (rc == ERR_OK)
        rc = account_grant(&store, &accounts, err);
    if (rc == ERR_OK)
        rc = write_config(stack, err);
    if (rc == ERR_OK)
        rc = make_token(stack, ret_token, err);
    if (rc)
        return rc;
    struct profile profile = {0};
    struct err ignored = {0};
    (void)snprintf(profile.url, sizeof(profile.url), "%s", stack->url);
    (void)snprintf(profile.token, sizeof(profile.token), "%s", *ret_token);
    (void)snprintf(profile.tenant, sizeof(profile.tenant), DEV_TENANT);
    rc = profile_write(stack->state, &profile, err);
    const struct contexts_dev dev = {.state = stack->state,
                                     .url = stack->url,
                                     .token = *ret_token,
                                     .tenant = DEV_TENANT,
                                     .port = stack->children[CHILD_WEB].port};
    /* The user's own context is a convenience: a home that cannot be written is no fault. */
    if (rc == ERR_OK && contexts_keep_dev(&dev, &ignored))
        log_err("dev.context.failed", &ignored);
    return rc;
}

static bool queue_is_there(struct http *http, const char *path)
{
    struct err ignored = {0};
    struct http_request request = {.method = "GET", .path = path};
    HTTP_ANSWER_AUTO struct http_answer answer = {0};
    return http_send(http, &request, &answer, &ignored) == ERR_OK && answer.status == 200;
}

static enum err_code put_queue(struct http *http, const char *path, const char *body,
                               struct err *err)
{
    struct http_request request = {.method = "PUT", .path = path, .body = sv_of(body)};
    HTTP_ANSWER_AUTO struct http_answer answer = {0};
    enum err_code rc = http_send(http, &request, &answer, err);
    if (rc == ERR_OK && answer.status >= 300)
        rc = err_set(err, ERR_PROTOCOL, "PUT %s: %ld %.300s", path, answer.status,
                     buf_text(&answer.body));
    return rc;
}

enum err_code stack_make_queues(struct stack *stack, struct err *err)
{
    static const struct {
        const char *path;
        const char *body;
    } rows[] = {
        {"/v1/queues/quick",
         "{\"priority\":20,\"filter\":\"maxMinutes <= 10 OR 'quick' IN tags\","
         "\"description\":\"short jobs, so that they do not wait behind long ones\"}"},
        {"/v1/queues/long", "{\"priority\":10,\"filter\":\"maxMinutes > 2880 OR 'long' IN tags\","
                            "\"description\":\"jobs of more than two days\"}"},
    };
    struct http *http = NULL;
    enum err_code rc = http_open(stack->url, stack->token, 10000, &http, err);
    for (size_t i = 0; i < ARRAY_LEN(rows) && rc == ERR_OK; i++) {
        if (!queue_is_there(http, rows[i].path))
            rc = put_queue(http, rows[i].path, rows[i].body, err);
    }
    http_free(http);
    return rc;
}
