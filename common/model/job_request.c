/* SPDX-License-Identifier: MIT */
#include "common/model/job_request.h"

#include "common/model/job_member.h"
#include "common/model/limits.h"

#include <ctype.h>

typedef enum err_code member_reader(struct job_request *request, const struct member *member,
                                    struct err *err);

/* Letters, digits and . _ - +, beginning with a letter or digit: safe in paths, URLs and logs. */
static enum err_code check_word(const struct member *member, const char *text, struct err *err)
{
    for (const char *at = text; *at; at++) {
        bool first = at == text;
        if (isalnum((unsigned char)*at) || (!first && strchr("._-+", *at)))
            continue;
        return err_set_at(err, ERR_INVALID, member->pointer,
                          "letters, digits and . _ - + are allowed, beginning with a letter or "
                          "digit; byte %zu is not",
                          (size_t)(at - text) + 1);
    }
    if (!*text)
        return err_set_at(err, ERR_INVALID, member->pointer, "it must not be empty");
    return ERR_OK;
}

/* Text shown to people: no control characters, no blank at either end, not empty. */
static enum err_code check_label(const struct member *member, const char *text, struct err *err)
{
    size_t length = strlen(text);
    if (length == 0)
        return err_set_at(err, ERR_INVALID, member->pointer, "it must not be empty");
    if (text[0] == ' ' || text[length - 1] == ' ')
        return err_set_at(err, ERR_INVALID, member->pointer,
                          "it must not begin or end with a blank");
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (byte < 0x20 || byte == 0x7F || byte == '/')
            return err_set_at(err, ERR_INVALID, member->pointer,
                              "control characters and '/' are not allowed; byte %zu is one", i + 1);
    }
    return ERR_OK;
}

static enum err_code read_word(const struct member *member, size_t max, const char **ret,
                               struct err *err)
{
    enum err_code rc = member_text(member, max, ret, err);
    return rc ? rc : check_word(member, *ret, err);
}

static enum err_code read_name(struct job_request *request, const struct member *member,
                               struct err *err)
{
    enum err_code rc = member_text(member, LIMIT_NAME_BYTES, &request->name, err);
    return rc ? rc : check_label(member, request->name, err);
}

static enum err_code read_command(struct job_request *request, const struct member *member,
                                  struct err *err)
{
    enum err_code rc =
        member_list(member, LIMIT_COMMAND_WORDS, LIMIT_WORD_BYTES, &request->command, err);
    if (rc)
        return rc;
    if (request->command.count == 0 || !request->command.items[0][0])
        return err_set_at(err, ERR_INVALID, member->pointer,
                          "it must begin with the name of a program");
    return ERR_OK;
}

static enum err_code read_args(struct job_request *request, const struct member *member,
                               struct err *err)
{
    return member_list(member, LIMIT_COMMAND_WORDS, LIMIT_WORD_BYTES, &request->args, err);
}

static enum err_code read_app_id(struct job_request *request, const struct member *member,
                                 struct err *err)
{
    return read_word(member, 64, &request->app_id, err);
}

static enum err_code read_app_version(struct job_request *request, const struct member *member,
                                      struct err *err)
{
    return read_word(member, 32, &request->app_version, err);
}

static enum err_code read_system_id(struct job_request *request, const struct member *member,
                                    struct err *err)
{
    return read_word(member, 64, &request->system_id, err);
}

static enum err_code read_env(struct job_request *request, const struct member *member,
                              struct err *err)
{
    return member_env(request, member, err);
}

static enum err_code read_inputs(struct job_request *request, const struct member *member,
                                 struct err *err)
{
    return member_inputs(request, member, err);
}

static enum err_code read_node_count(struct job_request *request, const struct member *member,
                                     struct err *err)
{
    return member_u32(member, 1, LIMIT_NODES, &request->node_count, err);
}

static enum err_code read_cores_per_node(struct job_request *request, const struct member *member,
                                         struct err *err)
{
    return member_u32(member, 1, LIMIT_CORES, &request->cores_per_node, err);
}

static enum err_code read_memory_mb(struct job_request *request, const struct member *member,
                                    struct err *err)
{
    return member_u32(member, 1, LIMIT_MEMORY_MB, &request->memory_mb, err);
}

static enum err_code read_max_minutes(struct job_request *request, const struct member *member,
                                      struct err *err)
{
    uint32_t minutes = 0;
    enum err_code rc = member_u32(member, 1, LIMIT_MINUTES, &minutes, err);
    if (rc)
        return rc;
    if (request->has_max_seconds)
        return err_set_at(err, ERR_INVALID, member->pointer,
                          "maxMinutes and maxSeconds exclude each other");
    request->max_seconds = minutes * 60;
    request->has_max_seconds = true;
    return ERR_OK;
}

static enum err_code read_max_seconds(struct job_request *request, const struct member *member,
                                      struct err *err)
{
    if (request->has_max_seconds)
        return err_set_at(err, ERR_INVALID, member->pointer,
                          "maxMinutes and maxSeconds exclude each other");
    request->has_max_seconds = true;
    return member_u32(member, 1, LIMIT_MINUTES * 60, &request->max_seconds, err);
}

static enum err_code read_archive_mode(struct job_request *request, const struct member *member,
                                       struct err *err)
{
    static const char *const modes[] = {"never", "onSuccess", "always"};
    const char *text = NULL;
    enum err_code rc = member_text(member, 32, &text, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        if (strcmp(text, modes[i]) == 0) {
            request->archive = (enum archive_mode)i;
            return ERR_OK;
        }
    }
    return err_set_at(err, ERR_INVALID, member->pointer,
                      "'%s' is not an archive mode; never, onSuccess and always are", text);
}

static enum err_code read_archive(struct job_request *request, const struct member *member,
                                  struct err *err)
{
    static const char *const names[] = {"mode", "includes", "excludes"};
    static const struct member_names known = {"archive", names, ARRAY_LEN(names)};
    enum err_code first = ERR_OK;
    enum err_code rc = member_object(member, err);
    const char *name = NULL;
    json_t *value = NULL;
    if (rc)
        return rc;
    json_object_foreach(member->value, name, value)
    {
        struct member item = member_of(member->pointer, name, value);
        if (strcmp(name, "mode") == 0)
            rc = read_archive_mode(request, &item, err);
        else if (strcmp(name, "includes") == 0)
            rc = member_patterns(&item, &request->includes, err);
        else if (strcmp(name, "excludes") == 0)
            rc = member_patterns(&item, &request->excludes, err);
        else
            rc = member_unknown(&item, name, &known, err);
        first = first ? first : rc;
        if (rc && !err_wants_more(err))
            break;
    }
    return first;
}

static enum err_code read_tags(struct job_request *request, const struct member *member,
                               struct err *err)
{
    enum err_code rc = member_list(member, LIMIT_TAG_COUNT, LIMIT_TAG_BYTES, &request->tags, err);
    for (size_t i = 0; i < json_array_size(member->value); i++) {
        struct member item = member_item(member, i);
        if (rc && !err_wants_more(err))
            break;
        enum err_code one = json_is_string(item.value)
                                ? check_label(&item, json_string_value(item.value), err)
                                : ERR_OK; /* said above */
        rc = rc ? rc : one;
    }
    return rc;
}

static enum err_code read_notes(struct job_request *request, const struct member *member,
                                struct err *err)
{
    return member_text(member, LIMIT_NOTES_BYTES, &request->notes, err);
}

static enum err_code read_subscriptions(struct job_request *request, const struct member *member,
                                        struct err *err)
{
    return member_hooks(request, member, err);
}

static enum err_code read_idempotency(struct job_request *request, const struct member *member,
                                      struct err *err)
{
    enum err_code rc = member_text(member, LIMIT_KEY_BYTES, &request->idempotency_key, err);
    return rc ? rc : check_label(member, request->idempotency_key, err);
}

static const struct {
    const char *name;
    bool in_app;
    member_reader *read;
} member_table[] = {
#define MEMBER(id, name, in_app) {name, in_app, read_##id},
#include "common/model/job_member.def"
#undef MEMBER
};

static const char *const member_name[] = {
#define MEMBER(id, name, in_app) name,
#include "common/model/job_member.def"
#undef MEMBER
};

static enum err_code read_member(struct job_request *request, const struct member *member,
                                 const char *name, bool as_app, struct err *err)
{
    static const struct member_names known = {"a job request", member_name, ARRAY_LEN(member_name)};
    for (size_t i = 0; i < ARRAY_LEN(member_table); i++) {
        if (strcmp(name, member_table[i].name) != 0)
            continue;
        if (as_app && !member_table[i].in_app)
            return err_set_at(err, ERR_UNKNOWN_MEMBER, member->pointer,
                              "'%s' belongs to a request, not to an application", name);
        return member_table[i].read(request, member, err);
    }
    return member_unknown(member, name, &known, err);
}

/* What execve takes: Linux limits the sum; ours is well below it. */
static enum err_code check_launch_size(const struct job_request *request, struct err *err)
{
    size_t bytes = 0;
    for (size_t i = 0; i < request->command.count; i++)
        bytes += strlen(request->command.items[i]) + 1;
    for (size_t i = 0; i < request->args.count; i++)
        bytes += strlen(request->args.items[i]) + 1;
    for (size_t i = 0; i < request->env_count; i++)
        bytes += strlen(request->env[i].name) + strlen(request->env[i].value) + 2;
    if (bytes > LIMIT_LAUNCH_BYTES)
        return err_set(err, ERR_INVALID,
                       "command, args and env have %zu bytes together, the limit is %d; put large "
                       "values into a file input",
                       bytes, LIMIT_LAUNCH_BYTES);
    return ERR_OK;
}

/* What is there, be it wrong, is not missing. */
static enum err_code check_missing(const json_t *root, const char *at, bool as_app, struct err *err)
{
    const json_t *app = json_object_get(root, "appId");
    const json_t *version = json_object_get(root, "appVersion");
    const json_t *command = json_object_get(root, "command");
    enum err_code rc = ERR_OK;
    if (!as_app && !json_object_get(root, "name"))
        rc = err_set_at(err, ERR_INVALID, member_of(at, "name", NULL).pointer, "name is missing");
    if (rc && !err_wants_more(err))
        return rc;
    if (!app != !version)
        rc = err_set_at(err, ERR_INVALID, member_of(at, app ? "appVersion" : "appId", NULL).pointer,
                        "appId and appVersion belong together");
    else if (as_app && !command)
        rc = err_set_at(err, ERR_INVALID, at, "an application needs a command");
    else if (!as_app && !app && !command)
        rc = err_set_at(err, ERR_INVALID, member_of(at, "command", NULL).pointer,
                        "command is missing; give command, or appId and appVersion");
    return rc;
}

static enum err_code read_all(struct job_request *request, const char *prefix, bool as_app,
                              struct err *err)
{
    const char *name = NULL;
    json_t *value = NULL;
    struct member root = {.value = request->root};
    (void)snprintf(root.pointer, sizeof(root.pointer), "%s", prefix ? prefix : "");
    enum err_code rc = member_object(&root, err);
    if (rc)
        return rc;
    json_object_foreach(request->root, name, value)
    {
        struct member member = member_of(root.pointer, name, value);
        enum err_code one = read_member(request, &member, name, as_app, err);
        rc = rc ? rc : one;
        if (rc && !err_wants_more(err))
            return rc;
    }
    enum err_code missing = check_missing(request->root, root.pointer, as_app, err);
    rc = rc ? rc : missing;
    return rc ? rc : check_launch_size(request, err);
}

static enum err_code read_request(json_t *value, const char *prefix, bool as_app,
                                  struct job_request **ret_request, struct err *err)
{
    AUTO(job_request_free) struct job_request *request = calloc(1, sizeof(*request));
    if (!request)
        return err_set(err, ERR_NOMEM, "no memory for a request");
    request->root = json_incref(value);
    request->archive = ARCHIVE_ALWAYS;
    request->node_count = 1;
    request->cores_per_node = 1;
    enum err_code rc = read_all(request, prefix, as_app, err);
    if (rc == ERR_OK)
        *ret_request = TAKE(request);
    return rc;
}

enum err_code job_request_from_json(json_t *value, const char *prefix,
                                    struct job_request **ret_request, struct err *err)
{
    return read_request(value, prefix, false, ret_request, err);
}

enum err_code job_request_parse(struct sv text, struct job_request **ret_request, struct err *err)
{
    JSON_AUTO json_t *value = NULL;
    enum err_code rc = job_json_read(text, &value, err);
    return rc ? rc : read_request(value, NULL, false, ret_request, err);
}

enum err_code job_request_check_app(struct sv definition, struct err *err)
{
    JSON_AUTO json_t *value = NULL;
    AUTO(job_request_free) struct job_request *request = NULL;
    enum err_code rc = job_json_read(definition, &value, err);
    return rc ? rc : read_request(value, NULL, true, &request, err);
}

void job_request_free(struct job_request *request)
{
    if (!request)
        return;
    free(request->command.items);
    free(request->args.items);
    free(request->includes.items);
    free(request->excludes.items);
    free(request->tags.items);
    free(request->env);
    free(request->inputs);
    free(request->hooks);
    json_decref(request->root);
    free(request);
}
