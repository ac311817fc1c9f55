/* SPDX-License-Identifier: MIT */
#include "cli/purge_note.h"

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/store/audit_log.h"

#include <inttypes.h>
#include <pwd.h>
#include <unistd.h>

#define NAME_ROOM 4096

static void add_actor(char actor[USER_SIZE])
{
    char room[NAME_ROOM];
    struct passwd entry;
    struct passwd *found = NULL;
    uid_t uid = getuid();
    (void)getpwuid_r(uid, &entry, room, sizeof(room), &found);
    if (found)
        (void)snprintf(actor, USER_SIZE, "os:%.100s", found->pw_name);
    else
        (void)snprintf(actor, USER_SIZE, "os:%u", (unsigned)uid);
}

static enum err_code add(const struct retention_pass *pass, const char *tenant, bool failed,
                         const struct buf *detail, struct err *err)
{
    struct audit_entry entry = {.id = uuid_v7(),
                                .action = "purge",
                                .method = "CLI",
                                .subject = "/v1/jobs",
                                .outcome = failed ? AUDIT_FAILED : AUDIT_DONE};
    add_actor(entry.actor);
    if (gethostname(entry.address, sizeof(entry.address) - 1) != 0)
        entry.address[0] = '\0';
    (void)snprintf(entry.tenant, sizeof(entry.tenant), "%s", tenant ? tenant : "");
    (void)snprintf(entry.detail, sizeof(entry.detail), "%s", buf_text(detail));
    return audit_log_add(pass->store, &entry, 1, err);
}

enum err_code purge_note_begin(const struct retention_pass *pass, struct err *err)
{
    BUF_AUTO struct buf detail = BUF_INIT(JOB_REASON_SIZE);
    char before[CLOCK_TEXT_SIZE];
    buf_add_text(&detail, "begun:");
    if (pass->before_us > 0) {
        clock_rfc3339(pass->before_us, before);
        buf_addf(&detail, " jobs that ended before %s", before);
    }
    for (int kind = 0; kind < RETENTION_KIND_COUNT && pass->before_us == 0; kind++) {
        if (!pass->tenant || retention_state((enum retention_kind)kind))
            buf_addf(&detail, " %s %u", retention_name((enum retention_kind)kind),
                     pass->policy->days[kind]);
    }
    if (pass->before_us == 0)
        buf_add_text(&detail, " days");
    if (pass->sweeps)
        buf_add_text(&detail, ", output without a job");
    return add(pass, pass->tenant, false, &detail, err);
}

enum err_code purge_note_tenant(const struct retention_pass *pass, const char *tenant,
                                uint64_t jobs, struct err *err)
{
    BUF_AUTO struct buf detail = BUF_INIT(JOB_REASON_SIZE);
    buf_addf(&detail, "removed: %" PRIu64 " jobs, with history and output", jobs);
    return add(pass, tenant, false, &detail, err);
}

enum err_code purge_note_end(const struct retention_pass *pass, bool failed, struct err *err)
{
    BUF_AUTO struct buf detail = BUF_INIT(JOB_REASON_SIZE);
    const struct retention_report *report = &pass->report;
    buf_addf(&detail, "%s:", failed ? "ended early, removed" : "removed");
    for (int kind = 0; kind < RETENTION_KIND_COUNT; kind++) {
        if (report->rows[kind] > 0)
            buf_addf(&detail, " %s %" PRIu64 ",", retention_name((enum retention_kind)kind),
                     report->rows[kind]);
    }
    buf_addf(&detail, " %" PRIu64 " events, %" PRIu64 " folders without a job, %" PRIu64 " bytes",
             report->events, report->orphans, report->bytes);
    return add(pass, pass->tenant, failed, &detail, err);
}
