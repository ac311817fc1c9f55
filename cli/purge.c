/* SPDX-License-Identifier: MIT */
/* purge: removes what is old now, or tells what would go. */

#include "cli/admin_db.h"
#include "cli/cli.h"
#include "cli/purge_note.h"

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/store/retention.h"

#include <inttypes.h>
#include <poll.h>

struct config_flag flags_purge[] = {
    {.name = "dry-run", .letter = 'n', .doc = "change nothing: tell what would go"},
    {.name = "tenant", .letter = 't', .argument = "NAME", .doc = "only jobs of this tenant"},
    {.name = "before",
     .argument = "TIME",
     .doc = "only jobs, but all that ended before: 2026-01-31 or 2026-01-31T12:00:00Z"},
    {.name = "sweep", .doc = "look through the whole archive for output without a job, too"},
    {.name = NULL},
};

static const struct cli_column columns[] = {
    {"WHAT", "what"}, {"ROWS", "rows"}, {"BYTES", "bytes"}, {"OLDER THAN", "before"}};

/* A pause takes no notice of signals: the end between two batches is as good as any. */
static bool rest(void *arg, int64_t ms)
{
    (void)arg;
    (void)poll(NULL, 0, (int)ms);
    return false;
}

static bool parse_before(const char *text, int64_t *ret_us)
{
    char whole[CLOCK_TEXT_SIZE];
    if (clock_parse_rfc3339(sv_of(text), ret_us))
        return true;
    int length = snprintf(whole, sizeof(whole), "%sT00:00:00Z", text);
    return length > 0 && (size_t)length < sizeof(whole) &&
           clock_parse_rfc3339(sv_of(whole), ret_us);
}

static void add_line(json_t *list, const char *what, uint64_t rows, json_t *bytes, int64_t limit_us)
{
    char before[CLOCK_TEXT_SIZE] = "";
    if (limit_us > 0)
        clock_rfc3339(limit_us, before);
    json_array_append_new(list, json_pack("{s:s, s:I, s:o, s:o}", "what", what, "rows",
                                          (json_int_t)rows, "bytes", bytes, "before",
                                          limit_us > 0 ? json_string(before) : json_null()));
}

static json_t *report_json(const struct retention_pass *pass, const struct retention_row *row)
{
    const struct retention_report *report = &pass->report;
    bool jobs_only = pass->tenant || pass->before_us > 0;
    json_t *list = json_array();
    for (int i = 0; i < RETENTION_KIND_COUNT; i++) {
        enum retention_kind kind = (enum retention_kind)i;
        if (jobs_only && !retention_state(kind))
            continue;
        add_line(list, retention_what(kind), report->rows[kind], json_null(),
                 retention_limit(pass->policy, kind, row, pass->before_us));
    }
    add_line(list, "events of these jobs", report->events, json_null(), 0);
    add_line(list, "output", report->orphans, json_integer((json_int_t)report->bytes), 0);
    return list;
}

/* The times that rows are compared with, and whether the wish can be granted. */
static int prepare(const struct cli *cli, const struct retention_pass *pass,
                   struct retention_row *row, struct err *err)
{
    enum err_code rc = retention_store_get(pass->store, row, err);
    if (rc)
        return cli_fail_err(rc == ERR_DB_AWAY ? CLI_NO_CONNECTION : CLI_REFUSED, err);
    if (pass->before_us >
        row->now_us - (int64_t)(pass->policy->key_hours + 1) * INT64_C(3600000000))
        return cli_fail(CLI_REFUSED,
                        "--before %s: a job is kept as long as its Idempotency-Key may be used "
                        "again, %u h and one more (limits.idempotency_hours)",
                        cli_value(cli, "before", ""), pass->policy->key_hours);
    return CLI_DONE;
}

static enum err_code remove_noted(struct retention_pass *pass, struct err *err)
{
    struct err end = {0};
    enum err_code rc = purge_note_begin(pass, err);
    if (rc)
        return rc;
    rc = retention_run(pass, err);
    if (purge_note_end(pass, rc != ERR_OK, &end) != ERR_OK)
        (void)cli_fail_err(CLI_REFUSED, &end);
    return rc;
}

static int run(const struct cli *cli, struct retention_pass *pass)
{
    struct retention_row row = {0};
    struct err err = {0};
    struct err end = {0};
    enum err_code rc = ERR_OK;
    int status = prepare(cli, pass, &row, &err);
    if (status != CLI_DONE)
        return status;
    if (!pass->is_dry)
        rc = retention_store_lead(pass->store, &pass->holder, pass->lease_ms, &err);
    if (rc == ERR_IN_USE)
        return cli_fail(CLI_REFUSED, "sluice-recovery removes what is old just now; try again");
    if (rc == ERR_OK)
        rc = pass->is_dry ? retention_run(pass, &err) : remove_noted(pass, &err);
    bool whole = rc == ERR_OK && !pass->tenant && pass->before_us == 0;
    if (!pass->is_dry && retention_store_done(pass->store, &pass->holder, whole, &end) != ERR_OK)
        (void)cli_fail_err(CLI_REFUSED, &end);
    CLI_JSON_AUTO json_t *list = report_json(pass, &row);
    cli_print_list(cli, list, columns, ARRAY_LEN(columns), "what");
    if (pass->report.failed > 0)
        (void)cli_fail(0, "%" PRIu64 " folders could not be removed; their jobs stay",
                       pass->report.failed);
    if (pass->report.untold > 0)
        (void)cli_fail(0,
                       "%" PRIu64 " jobs went before sluice-webhook had looked at them: nobody is "
                       "told of them",
                       pass->report.untold);
    if (rc)
        return cli_fail_err(rc == ERR_DB_AWAY ? CLI_NO_CONNECTION : CLI_REFUSED, &err);
    return pass->report.failed > 0 ? CLI_REFUSED : CLI_DONE;
}

int cmd_purge(struct cli *cli)
{
    struct err err = {0};
    AUTO(store_free) struct store *store = NULL;
    FD_AUTO int archive_fd = -1;
    const struct store_config setup = admin_db_config(cli->cfg);
    const struct retention_policy policy = retention_policy_of(cli->cfg);
    struct retention_pass pass = {.policy = &policy,
                                  .holder = uuid_v7(),
                                  .lease_ms = RETENTION_LEASE_MS,
                                  .tenant = cli_value(cli, "tenant", NULL),
                                  .is_dry = cli_has(cli, "dry-run"),
                                  .sweeps = cli_has(cli, "sweep"),
                                  .rest = cli_has(cli, "dry-run") ? NULL : rest};
    if (!pass.is_dry && !pass.tenant)
        pass.went = purge_note_tenant;
    if (cli_has(cli, "before") && /* 0 would be none at all */
        (!parse_before(cli_value(cli, "before", ""), &pass.before_us) || pass.before_us <= 0))
        return cli_fail(CLI_USAGE, "--before %s is no time: 2026-01-31 or 2026-01-31T12:00:00Z",
                        cli_value(cli, "before", ""));
    if (store_open(&setup, &store, &err) ||
        fs_open_dir(cli->cfg->archive_root, false, &archive_fd, &err))
        return cli_fail_err(CLI_REFUSED, &err);
    pass.store = store;
    pass.archive_fd = archive_fd;
    return run(cli, &pass);
}
