/* SPDX-License-Identifier: MIT */
#include "common/base/fs.h"
#include "common/model/job_request.h"
#include "common/model/limits.h"
#include "tests/fuzz/fuzz.h"

/* Input: a job request; or, with a line feed in it, an application's definition and a request that
 * names it. What is taken keeps its limits, its paths stay in the job's folder, and its canonical
 * text means the same request. */

#define DEFAULT_SECONDS 60
#define MOST_SECONDS 3600

static void check_texts(const struct text_list *list, size_t most_items, size_t most_bytes)
{
    MUST(list->count <= most_items);
    for (size_t i = 0; i < list->count; i++)
        MUST(strlen(list->items[i]) <= most_bytes && sv_is_utf8(sv_of(list->items[i])));
}

static void check_inputs(const struct job_request *request)
{
    MUST(request->input_count <= LIMIT_INPUT_COUNT);
    for (size_t i = 0; i < request->input_count; i++) {
        const struct job_input *input = &request->inputs[i];
        MUST(fs_path_is_safe(sv_of(input->target_path)));
        MUST((input->mode & ~0777U) == 0);
        MUST(!input->source_url || strlen(input->source_url) <= LIMIT_URL_BYTES);
    }
}

static void check_env(const struct job_request *request)
{
    MUST(request->env_count <= LIMIT_ENV_COUNT);
    for (size_t i = 0; i < request->env_count; i++) {
        MUST(request->env[i].name[0] && !strchr(request->env[i].name, '='));
        MUST(request->env[i].value);
    }
}

static void check_request(const struct job_request *request)
{
    check_texts(&request->command, LIMIT_COMMAND_WORDS, LIMIT_WORD_BYTES);
    check_texts(&request->args, LIMIT_COMMAND_WORDS, LIMIT_WORD_BYTES);
    check_texts(&request->includes, LIMIT_PATTERN_COUNT, LIMIT_PATTERN_BYTES);
    check_texts(&request->excludes, LIMIT_PATTERN_COUNT, LIMIT_PATTERN_BYTES);
    check_texts(&request->tags, LIMIT_TAG_COUNT, LIMIT_TAG_BYTES);
    check_inputs(request);
    check_env(request);
    MUST(request->node_count >= 1 && request->node_count <= LIMIT_NODES);
    MUST(request->cores_per_node >= 1 && request->cores_per_node <= LIMIT_CORES);
    MUST(request->memory_mb <= LIMIT_MEMORY_MB);
    MUST(!request->name || strlen(request->name) <= LIMIT_NAME_BYTES);
}

/* The canonical text is a request again, and its canonical text is the same. */
static void check_text(const struct job_request *request)
{
    AUTO(job_request_free) struct job_request *again = NULL;
    struct err err = {0};
    TEXT_AUTO char *text = job_request_text(request);
    TEXT_AUTO char *tags = job_request_tags(request);
    MUST(text && tags && tags[0] == '[');
    MUST(job_request_parse(sv_of(text), &again, &err) == ERR_OK);
    check_request(again);
    TEXT_AUTO char *twice = job_request_text(again);
    MUST(twice && strcmp(text, twice) == 0);
}

static void check_error(const struct err *err)
{
    MUST(err->code != ERR_OK && err->text[0]);
    MUST(err_http(err->code) >= 400 && err_http(err->code) < 500);
    MUST(memchr(err->text, 0, sizeof(err->text)) && memchr(err->pointer, 0, sizeof(err->pointer)));
}

static void check_complete(struct job_request *request)
{
    struct err err = {0};
    if (job_request_complete(request, DEFAULT_SECONDS, MOST_SECONDS, &err) != ERR_OK) {
        check_error(&err);
        return;
    }
    MUST(request->command.count > 0);
    MUST(request->max_seconds >= 1 && request->max_seconds <= MOST_SECONDS);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    AUTO(job_request_free) struct job_request *request = NULL;
    AUTO(job_request_free) struct job_request *merged = NULL;
    struct err err = {0};
    struct sv rest;
    struct sv definition = first_line(bytes, size, &rest);
    struct sv text = rest.len ? rest : (struct sv){(const char *)bytes, size};
    if (job_request_parse(text, &request, &err) != ERR_OK) {
        check_error(&err);
        return 0;
    }
    check_request(request);
    check_text(request);
    if (rest.len && job_request_check_app(definition, &err) == ERR_OK) {
        if (job_request_merge(request, definition, &merged, &err) != ERR_OK) {
            check_error(&err);
            return 0;
        }
        check_request(merged);
        check_text(merged);
        check_complete(merged);
    }
    check_complete(request);
    return 0;
}
