/* SPDX-License-Identifier: MIT */
#include "worker/runner/record.h"

#include "worker/runner/fields.h"

static const struct {
    const char *text;
    bool infrastructure;
} reasons[] = {
#define RUNNER_REASON(name, text, infrastructure) [RUNNER_##name] = {text, infrastructure},
#include "worker/runner/reason.def"
#undef RUNNER_REASON
};

static const struct field stream_fields[] = {
    FIELD(FIELD_U64, struct runner_stream, total_bytes),
    FIELD(FIELD_U64, struct runner_stream, kept_bytes),
    FIELD(FIELD_BOOL, struct runner_stream, truncated),
    FIELD_TEXT_OF(struct runner_stream, error),
    FIELD_END,
};

static const struct field record_fields[] = {
    FIELD(FIELD_UUID, struct runner_record, job),
    FIELD(FIELD_U64, struct runner_record, fence),
    FIELD(FIELD_U64, struct runner_record, run),
    FIELD_TEXT_OF(struct runner_record, start_error),
    FIELD_TEXT_OF(struct runner_record, start_step),
    FIELD(FIELD_INT, struct runner_record, exit_code),
    FIELD(FIELD_INT, struct runner_record, signal),
    FIELD(FIELD_BOOL, struct runner_record, core_dumped),
    FIELD_OTHER("reason"),
    FIELD_TEXT_OF(struct runner_record, note),
    FIELD(FIELD_I64, struct runner_record, started_us),
    FIELD(FIELD_I64, struct runner_record, ended_us),
    FIELD(FIELD_I64, struct runner_record, ended_boot_us),
    FIELD(FIELD_U64, struct runner_record, wall_ms),
    FIELD(FIELD_U64, struct runner_record, run_us),
    FIELD(FIELD_U64, struct runner_record, user_ms),
    FIELD(FIELD_U64, struct runner_record, system_ms),
    FIELD(FIELD_U64, struct runner_record, max_rss_bytes),
    FIELD(FIELD_U64, struct runner_record, leftovers),
    FIELD_TABLE_OF(struct runner_record, out, stream_fields),
    FIELD_TABLE_OF(struct runner_record, err, stream_fields),
    FIELD_END,
};

static const struct field job_fields[] = {
    FIELD(FIELD_UUID, struct runner_job, job),
    FIELD(FIELD_U64, struct runner_job, fence),
    FIELD(FIELD_U64, struct runner_job, run),
    FIELD(FIELD_INT, struct runner_job, pid),
    FIELD(FIELD_I64, struct runner_job, started_us),
    FIELD(FIELD_I64, struct runner_job, started_boot_us),
    FIELD(FIELD_BOOL, struct runner_job, exited),
    FIELD_OTHER("record"),
    FIELD_END,
};

const char *runner_reason_text(enum runner_reason reason)
{
    return reasons[reason].text;
}

bool runner_reason_is_infrastructure(enum runner_reason reason)
{
    return reasons[reason].infrastructure;
}

bool runner_record_output_failed(const struct runner_record *record)
{
    return record->out.error[0] || record->err.error[0];
}

const char *runner_job_dir(const struct uuid *job, uint64_t run, char *ret_dir)
{
    char text[UUID_TEXT_SIZE];
    (void)snprintf(ret_dir, RUNNER_DIR_SIZE, "jobs/%s.%llu", uuid_text(job, text),
                   (unsigned long long)run);
    return ret_dir;
}

/* Adds value to json, which is lost if that fails; takes both references. */
static json_t *with_member(json_t *json, const char *name, json_t *value)
{
    if (!json || !value) {
        json_decref(json);
        json_decref(value);
        return NULL;
    }
    if (json_object_set_new(json, name, value) == 0)
        return json;
    json_decref(json);
    return NULL;
}

json_t *runner_record_json(const struct runner_record *record)
{
    return with_member(fields_json(record_fields, record), "reason",
                       json_string(runner_reason_text(record->reason)));
}

enum err_code runner_record_parse(const json_t *json, struct runner_record *ret_record,
                                  struct err *err)
{
    struct runner_record record = {0};
    enum err_code rc = fields_parse(record_fields, FIELDS_ANY_VERSION, json, &record, err);
    if (rc)
        return rc;
    if (uuid_is_nil(&record.job) || record.fence == 0 || record.run == 0)
        return err_set(err, ERR_PROTOCOL, "job, fence or run is missing");
    struct sv text = sv_of(json_string_value(json_object_get(json, "reason")));
    for (int reason = 0; text.ptr && reason < RUNNER_REASON_COUNT; reason++) {
        if (!sv_is(text, reasons[reason].text))
            continue;
        record.reason = (enum runner_reason)reason;
        *ret_record = record;
        return ERR_OK;
    }
    return err_set(err, ERR_PROTOCOL, "member reason is missing or unknown");
}

json_t *runner_job_json(const struct runner_job *job)
{
    json_t *record = job->exited ? runner_record_json(&job->record) : json_null();
    return with_member(fields_json(job_fields, job), "record", record);
}

enum err_code runner_job_parse(const json_t *json, struct runner_job *ret_job, struct err *err)
{
    struct runner_job job = {0};
    enum err_code rc = fields_parse(job_fields, FIELDS_ANY_VERSION, json, &job, err);
    if (rc == ERR_OK && (uuid_is_nil(&job.job) || job.fence == 0 || job.run == 0))
        rc = err_set(err, ERR_PROTOCOL, "job, fence or run is missing");
    if (rc == ERR_OK && job.exited)
        rc = runner_record_parse(json_object_get(json, "record"), &job.record, err);
    if (rc == ERR_OK)
        *ret_job = job;
    return rc;
}
