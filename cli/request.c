/* SPDX-License-Identifier: MIT */
#include "cli/request.h"

#include "common/base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#define INPUT_BYTES_MAX ((size_t)1024 * 1024)

int request_read_json(const char *path, json_t **ret_json)
{
    json_error_t reason;
    bool is_stdin = strcmp(path, "-") == 0;
    json_t *json = is_stdin ? json_loadf(stdin, JSON_REJECT_DUPLICATES, &reason)
                            : json_load_file(path, JSON_REJECT_DUPLICATES, &reason);
    if (!json && reason.line < 0) /* it could not be opened; the text names it */
        return cli_fail(CLI_USAGE, "%s", reason.text);
    if (!json)
        return cli_fail(CLI_USAGE, "%s: %s (line %d, column %d)", is_stdin ? "stdin" : path,
                        reason.text, reason.line, reason.column);
    *ret_json = json;
    return CLI_DONE;
}

static int load_file(const char *path, json_t **ret_request)
{
    json_t *request = NULL;
    int status = request_read_json(path, &request);
    if (status != CLI_DONE)
        return status;
    if (!json_is_object(request)) {
        json_decref(request);
        return cli_fail(CLI_USAGE, "%s: a JSON object is wanted", path);
    }
    *ret_request = request;
    return CLI_DONE;
}

static int add_env(json_t *request, const struct config_flag *flag)
{
    json_t *env = json_object();
    for (size_t i = 0; i < flag->count; i++) {
        const char *equals = strchr(flag->list[i], '=');
        char name[256];
        if (!equals || (size_t)(equals - flag->list[i]) >= sizeof(name)) {
            json_decref(env);
            return cli_fail(CLI_USAGE, "--env '%s' is not NAME=VALUE", flag->list[i]);
        }
        (void)snprintf(name, sizeof(name), "%.*s", (int)(equals - flag->list[i]), flag->list[i]);
        (void)json_object_set_new(env, name, json_string(equals + 1));
    }
    (void)json_object_set_new(request, "env", env);
    return CLI_DONE;
}

static json_t *local_input(const char *path, struct err *err)
{
    char whole[PATH_MAX];
    struct stat about;
    struct err inner = {0};
    BUF_AUTO struct buf bytes = BUF_INIT(INPUT_BYTES_MAX);
    FD_AUTO int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!realpath(path, whole) || stat(whole, &about) != 0) {
        (void)err_set_errno(err, ERR_INVALID, errno, "--input %s", path);
        return NULL;
    }
    if (!S_ISREG(about.st_mode)) {
        (void)err_set(err, ERR_INVALID, "--input %s is not a regular file", path);
        return NULL;
    }
    enum err_code rc = fs_read(root, whole + 1, &bytes, &inner);
    if (rc == ERR_TOO_LARGE) {
        (void)err_set(
            err, ERR_INVALID,
            "--input %s has %lld bytes, %zu may be sent along: give an http, https or file "
            "address instead",
            path, (long long)about.st_size, INPUT_BYTES_MAX);
        return NULL;
    }
    if (rc) {
        (void)err_set(err, rc, "--input %s: %s", path, inner.text);
        return NULL;
    }
    json_t *content = json_stringn(buf_text(&bytes), bytes.len);
    if (!content)
        (void)err_set(err, ERR_INVALID,
                      "--input %s is not UTF-8 text; give an http, https or file address instead",
                      path);
    return content;
}

static int add_input(json_t *inputs, const char *text)
{
    struct err err = {0};
    char source[4097];
    bool is_url = strncmp(text, "http://", 7) == 0 || strncmp(text, "https://", 8) == 0 ||
                  strncmp(text, "file://", 7) == 0;
    const char *equals = strrchr(text, '=');
    size_t length = equals ? (size_t)(equals - text) : strlen(text);
    if (!sv_copy((struct sv){text, length}, source, sizeof(source)))
        return cli_fail(CLI_USAGE, "--input: the name is too long");
    const char *slash = strrchr(source, '/');
    const char *target = equals ? equals + 1 : slash ? slash + 1 : source;
    json_t *value = is_url ? json_string(source) : local_input(source, &err);
    if (!value)
        return cli_fail_err(CLI_USAGE, &err);
    (void)json_array_append_new(inputs, json_pack("{s:o, s:s}", is_url ? "sourceUrl" : "content",
                                                  value, "targetPath", target));
    return CLI_DONE;
}

static int add_inputs(json_t *request, const struct config_flag *flag)
{
    json_t *inputs = json_array();
    int status = CLI_DONE;
    for (size_t i = 0; i < flag->count && status == CLI_DONE; i++)
        status = add_input(inputs, flag->list[i]);
    (void)json_object_set_new(request, "fileInputs", inputs);
    return status;
}

static json_t *texts(const struct config_flag *flag)
{
    json_t *array = json_array();
    for (size_t i = 0; i < flag->count; i++)
        (void)json_array_append_new(array, json_string(flag->list[i]));
    return array;
}

static int add_app(json_t *request, const char *text)
{
    const char *slash = strchr(text, '/');
    if (!slash)
        return cli_fail(CLI_USAGE, "--app '%s' is not ID/VERSION", text);
    (void)json_object_set_new(request, "appId", json_stringn(text, (size_t)(slash - text)));
    (void)json_object_set_new(request, "appVersion", json_string(slash + 1));
    return CLI_DONE;
}

/* Flags that are one member each. */
static void add_members(const struct cli *cli, json_t *request)
{
    static const struct {
        const char *flag;
        const char *member;
        bool number;
    } rows[] = {
        {"name", "name", false},
        {"memory-mb", "memoryMB", true},
        {"cores", "coresPerNode", true},
        {"nodes", "nodeCount", true},
        {"max-minutes", "maxMinutes", true},
        {"max-seconds", "maxSeconds", true},
        {"system", "systemId", false},
        {"notes", "notes", false},
        {"key", "idempotencyKey", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (!cli_has(cli, rows[i].flag))
            continue;
        json_t *value = rows[i].number ? json_integer(cli_number(cli, rows[i].flag, 0, UINT32_MAX))
                                       : json_string(cli_value(cli, rows[i].flag, ""));
        (void)json_object_set_new(request, rows[i].member, value);
    }
}

static int add_lists(const struct cli *cli, json_t *request)
{
    int status = CLI_DONE;
    if (cli_has(cli, "env"))
        status = add_env(request, cli_flag(cli, "env"));
    if (status == CLI_DONE && cli_has(cli, "input"))
        status = add_inputs(request, cli_flag(cli, "input"));
    if (status == CLI_DONE && cli_has(cli, "app"))
        status = add_app(request, cli_value(cli, "app", ""));
    if (cli_has(cli, "tag"))
        (void)json_object_set_new(request, "tags", texts(cli_flag(cli, "tag")));
    if (cli_has(cli, "keep"))
        (void)json_object_set_new(request, "archive",
                                  json_pack("{s:o}", "includes", texts(cli_flag(cli, "keep"))));
    return status;
}

static void add_command(const struct cli *cli, json_t *request)
{
    if (cli->operand_count == 0)
        return;
    json_t *words = json_array();
    for (int i = 0; i < cli->operand_count; i++)
        (void)json_array_append_new(words, json_string(cli->operands[i]));
    (void)json_object_set_new(request, json_object_get(request, "appId") ? "args" : "command",
                              words);
}

/* A job without a name is called after its program. */
static void add_name(const struct cli *cli, json_t *request)
{
    const char *word = cli->operand_count > 0 ? cli->operands[0] : cli_text(request, "appId");
    const char *slash = strrchr(word, '/');
    char name[65];
    if (json_object_get(request, "name"))
        return;
    (void)snprintf(name, sizeof(name), "%s", slash && slash[1] ? slash + 1 : word);
    (void)json_object_set_new(request, "name", json_string(*name ? name : "job"));
}

int request_build(const struct cli *cli, json_t **ret_request)
{
    CLI_JSON_AUTO json_t *request = NULL;
    int status = CLI_DONE;
    if (cli_has(cli, "file"))
        status = load_file(cli_value(cli, "file", ""), &request);
    else
        request = json_object();
    if (status != CLI_DONE)
        return status;
    add_members(cli, request);
    status = add_lists(cli, request);
    if (status != CLI_DONE)
        return status;
    add_command(cli, request);
    add_name(cli, request);
    *ret_request = TAKE(request);
    return CLI_DONE;
}
