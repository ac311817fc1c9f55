/* SPDX-License-Identifier: MIT */
#include "cli/doctor.h"

#include "common/store/migrate.h"
#include "common/store/tenant_store.h"

#include <stdarg.h>

struct config_flag flags_doctor[] = {{.name = NULL}};

#define TEXT_LIMIT ((size_t)4096)

enum needs { NEEDS_NOTHING, NEEDS_DATABASE, NEEDS_SCHEMA, NEEDS_BROKER, NEEDS_SITE };

static const struct {
    const char *name;
    enum needs needs;
    void (*look)(struct doctor *doctor);
} checks[] = {
#define DOCTOR_CHECK(id, name, needs) {name, NEEDS_##needs, doctor_##id},
#include "cli/doctor.def"
#undef DOCTOR_CHECK
};

static const char *const grades[] = {
    [DOCTOR_OK] = "ok",
    [DOCTOR_WARNING] = "warning",
    [DOCTOR_FAULT] = "fault",
    [DOCTOR_CANNOT_TELL] = "cannot tell",
};

void doctor_find(struct doctor *doctor, enum doctor_grade grade, const char *cure,
                 const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    doctor->fault = doctor->fault || grade == DOCTOR_FAULT;
    json_t *finding = json_object();
    json_t *told = json_string(text);
    json_object_set_new(finding, "check", json_string(doctor->check));
    json_object_set_new(finding, "result", json_string(grades[grade]));
    json_object_set_new(finding, "finding", told ? told : json_string("(not UTF-8)"));
    json_object_set_new(finding, "cure", *cure ? json_string(cure) : json_null());
    json_array_append_new(doctor->findings, finding);
}

/* ---- what is there to look at --------------------------------------------------------------- */

static enum err_code add_queues(struct doctor *doctor, const char *tenant, struct err *err)
{
    struct job_queue_list list = {0};
    enum err_code rc = queue_store_list(doctor->store, tenant, &list, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < list.count && doctor->queue_count < DOCTOR_QUEUES_MAX; i++) {
        doctor->queues[doctor->queue_count] = list.items[i];
        doctor->queues[doctor->queue_count++].filter = NULL; /* freed with the list */
    }
    job_queue_list_done(&list);
    return ERR_OK;
}

static void read_queues(struct doctor *doctor)
{
    struct tenant_name *tenants = NULL;
    size_t count = 0;
    struct err err = {0};
    enum err_code rc = tenant_store_list(doctor->store, &tenants, &count, &err);
    for (size_t i = 0; rc == ERR_OK && i < count; i++)
        rc = add_queues(doctor, tenants[i].text, &err);
    free(tenants);
    if (rc)
        doctor_find(doctor, DOCTOR_FAULT, "run 'sluice migrate', and look at the server's log",
                    "the queues cannot be read: %s", err.text);
}

/* After the check of the schema: the store's statements suit one of ours. */
static void open_store(struct doctor *doctor)
{
    struct err err = {0};
    if (!doctor->site.has_schema || doctor->site.schema < migrate_newest())
        return;
    if (store_open(&doctor->db, &doctor->store, &err))
        doctor_find(doctor, DOCTOR_FAULT, "", "%s", err.text);
    else
        read_queues(doctor);
}

/* ---- the round ------------------------------------------------------------------------------ */

static bool is_given(const struct doctor *doctor, enum needs needs)
{
    bool database = doctor->site.version[0] != 0;
    switch (needs) {
    case NEEDS_DATABASE:
        return database;
    case NEEDS_SCHEMA:
        return doctor->store != NULL;
    case NEEDS_BROKER:
        return doctor->bus != NULL;
    case NEEDS_SITE:
        return doctor->store && doctor->bus;
    case NEEDS_NOTHING:
        break;
    }
    return true;
}

static void look(struct doctor *doctor)
{
    for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
        doctor->check = checks[i].name;
        if (is_given(doctor, checks[i].needs))
            checks[i].look(doctor);
        else
            doctor_find(doctor, DOCTOR_CANNOT_TELL, "put the faults above right first",
                        "it needs the %s",
                        checks[i].needs == NEEDS_BROKER ? "broker"
                        : checks[i].needs == NEEDS_SITE ? "database, its schema and the broker"
                                                        : "database and its schema");
        if (checks[i].look == doctor_schema && doctor->site.version[0])
            open_store(doctor);
    }
}

int cmd_doctor(struct cli *cli)
{
    static const struct cli_column columns[] = {
        {"CHECK", "check"}, {"RESULT", "result"}, {"FINDING", "finding"}, {"CURE", "cure"}};
    CLI_JSON_AUTO json_t *findings = json_array();
    struct doctor *doctor = calloc(1, sizeof(*doctor));
    if (!doctor || !findings) {
        free(doctor);
        return cli_fail(CLI_REFUSED, "no memory");
    }
    doctor->cfg = cli->cfg;
    doctor->findings = findings;
    look(doctor);
    cli_print_list(cli, findings, columns, ARRAY_LEN(columns), "finding");
    int status = doctor->fault ? CLI_REFUSED : CLI_DONE;
    bus_inspector_free(doctor->bus);
    store_free(doctor->store);
    free(doctor);
    return status;
}
