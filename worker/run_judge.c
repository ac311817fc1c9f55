/* SPDX-License-Identifier: MIT */
#include "worker/run.h"

#include "common/base/fs.h"
#include "common/base/last_line.h"
#include "worker/disk_room.h"

#include <fcntl.h>
#include <unistd.h>

/* The runner has written all of it before it tells the end. */
static bool read_last_line(const struct run *run, char ret_line[LAST_LINE_SIZE])
{
    char path[TENANT_SIZE + UUID_TEXT_SIZE + 40];
    FD_AUTO int fd = -1;
    struct err err = {0};
    (void)snprintf(path, sizeof(path), "%s/%s/%llu/stderr", run->job->tenant, run->id_text,
                   (unsigned long long)run->run);
    return fs_open_beneath(run->w->archive_fd, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0, &fd,
                           &err) == ERR_OK &&
           last_line_read(fd, ret_line);
}

void run_judge(struct run *run)
{
    char line[LAST_LINE_SIZE];
    char room[DISK_ROOM_SIZE];
    const struct runner_confine *confine = &run->w->confinement.confine;
    struct outcome_facts facts = {
        .record = &run->record,
        .program = run->request ? run->request->command.items[0] : "?",
        .max_seconds = run->job->max_seconds,
        .memory_mb = run->job->memory_mb,
        .place = {.env = run->environment.items,
                  .home = run->home,
                  .host = run->w->host,
                  .user = confine->other_user ? confine->uid : geteuid()},
    };
    if (outcome_wants_last_line(&facts) && read_last_line(run, line))
        facts.last_line = line;
    if (runner_record_output_failed(&run->record))
        facts.archive_room = disk_room_text(run->w->archive_fd, "archive.root", run->w->host, room);
    outcome_judge(&facts, &run->end);
}
