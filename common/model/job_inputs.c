/* SPDX-License-Identifier: MIT */
#include "common/base/fs.h"
#include "common/model/job_member.h"
#include "common/model/limits.h"

/* Permission bits as octal text, as chmod takes them. */
static enum err_code read_mode(const struct member *member, unsigned *ret_mode, struct err *err)
{
    const char *text = NULL;
    unsigned mode = 0;
    enum err_code rc = member_text(member, 4, &text, err);
    if (rc)
        return rc;
    size_t length = strspn(text, "01234567");
    for (size_t i = 0; i < length; i++)
        mode = mode << 3 | (unsigned)(text[i] - '0');
    if (length < 3 || text[length] || mode > 0777)
        return err_set_at(err, ERR_INVALID, member->pointer,
                          "'%s' is not a file mode from \"000\" to \"0777\" in octal", text);
    *ret_mode = mode;
    return ERR_OK;
}

static enum err_code check_url(const struct member *member, const char *url, struct err *err)
{
    static const char *const schemes[] = {"http://", "https://", "file:///"};
    for (const char *at = url; *at; at++) {
        if ((unsigned char)*at < 0x20 || *at == 0x7F)
            return err_set_at(err, ERR_INVALID, member->pointer,
                              "an address holds no control characters; byte %zu is one",
                              (size_t)(at - url) + 1);
    }
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        if (strncmp(url, schemes[i], strlen(schemes[i])) == 0 && url[strlen(schemes[i])])
            return ERR_OK;
    }
    return err_set_at(err, ERR_INVALID, member->pointer,
                      "an address that begins with http://, https:// or file:/// is wanted here");
}

static enum err_code read_input_member(struct job_input *input, const struct member *member,
                                       const char *name, struct err *err)
{
    static const char *const names[] = {"sourceUrl", "content", "targetPath", "mode"};
    static const struct member_names known = {"a file input", names, ARRAY_LEN(names)};
    enum err_code rc = ERR_OK;
    const char *text = NULL;
    if (strcmp(name, "sourceUrl") == 0) {
        rc = member_text(member, LIMIT_URL_BYTES, &input->source_url, err);
        return rc ? rc : check_url(member, input->source_url, err);
    }
    if (strcmp(name, "content") == 0) {
        rc = member_text(member, LIMIT_INLINE_BYTES, &text, err);
        if (rc == ERR_OK)
            input->content = (struct sv){text, json_string_length(member->value)};
        return rc;
    }
    if (strcmp(name, "targetPath") == 0) {
        rc = member_text(member, LIMIT_PATH_BYTES, &input->target_path, err);
        if (rc == ERR_OK && !fs_path_is_safe(sv_of(input->target_path)))
            rc = err_set_at(err, ERR_INVALID, member->pointer,
                            "a relative path without empty, '.' and '..' parts is wanted here");
        return rc;
    }
    if (strcmp(name, "mode") == 0)
        return read_mode(member, &input->mode, err);
    return member_unknown(member, name, &known, err);
}

static enum err_code read_input(struct job_input *input, const struct member *member,
                                struct err *err)
{
    enum err_code rc = member_object(member, err);
    if (rc)
        return rc;
    input->mode = 0644;
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach(member->value, name, value)
    {
        struct member item = member_of(member->pointer, name, value);
        enum err_code one = read_input_member(input, &item, name, err);
        rc = rc ? rc : one;
        if (rc && !err_wants_more(err))
            return rc;
    }
    if (!json_object_get(member->value, "sourceUrl") == !json_object_get(member->value, "content"))
        rc = err_set_at(err, ERR_INVALID, member->pointer,
                        "a file input has either sourceUrl or content");
    if (!json_object_get(member->value, "targetPath") && (rc == ERR_OK || err_wants_more(err)))
        rc = err_set_at(err, ERR_INVALID, member->pointer, "targetPath is missing");
    return rc;
}

/* Two inputs of one path: the later one would silently win. */
static enum err_code check_target(const struct job_request *request, const struct member *member,
                                  size_t index, struct err *err)
{
    const char *path = request->inputs[index].target_path;
    for (size_t i = 0; i < index; i++) {
        struct member target = member_of(member->pointer, "targetPath", NULL);
        if (request->inputs[i].target_path && strcmp(request->inputs[i].target_path, path) == 0)
            return err_set_at(err, ERR_INVALID, target.pointer,
                              "file input %zu has this targetPath already", i);
    }
    return ERR_OK;
}

enum err_code member_inputs(struct job_request *request, const struct member *member,
                            struct err *err)
{
    enum err_code rc = member_array(member, LIMIT_INPUT_COUNT, err);
    if (rc)
        return rc;
    size_t count = json_array_size(member->value);
    size_t inline_bytes = 0;
    request->inputs = calloc(count ? count : 1, sizeof(*request->inputs));
    if (!request->inputs)
        return err_set(err, ERR_NOMEM, "no memory for %zu file inputs", count);
    for (size_t i = 0; i < count; i++) {
        struct member item = member_item(member, i);
        enum err_code one = read_input(&request->inputs[request->input_count++], &item, err);
        if (one == ERR_OK)
            one = check_target(request, &item, i, err);
        rc = rc ? rc : one;
        if (rc && !err_wants_more(err))
            return rc;
        inline_bytes += request->inputs[i].content.len;
    }
    if (rc)
        return rc;
    if (inline_bytes > LIMIT_INLINE_BYTES)
        return err_set_at(err, ERR_INVALID, member->pointer,
                          "%zu bytes of inline content are too many, the limit is %d", inline_bytes,
                          LIMIT_INLINE_BYTES);
    return ERR_OK;
}
