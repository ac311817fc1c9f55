/* SPDX-License-Identifier: MIT */
#include "webapp/follow_impl.h"

#include "common/base/clock.h"
#include "common/base/openssl.h"
#include "common/base/spare.h"
#include "common/store/job_store.h"
#include "webapp/job_run.h"
#include "webapp/job_view.h"

#include <unistd.h>

#define RUN_LOOK_MS 1000 /* how often it is seen whether the job runs anew, elsewhere */
#define QUIET_MS 15000   /* after so long a comment is sent, which finds readers that are gone */
#define CHUNK_BYTES ((size_t)48 * 1024)

static bool add_base64(struct buf *event, const unsigned char *bytes, size_t count)
{
    unsigned char text[CHUNK_BYTES / 3 * 4 + 4];
    int length = EVP_EncodeBlock(text, bytes, (int)count);
    return buf_add(event, text, (size_t)length);
}

/* Opens the file of the newest run; a newer one than before begins anew. */
static void open_run(struct follower *follower)
{
    FD_AUTO int run_fd = -1;
    uint64_t run = 0;
    uint64_t size = 0;
    struct err err = {0};
    if (follower->fd >= 0 && clock_mono_ms() < follower->next_run_look_ms)
        return;
    follower->next_run_look_ms = clock_mono_ms() + RUN_LOOK_MS;
    if (job_run_open(follower->all->web->archive_fd, &follower->job, &run_fd, &run, &err) != ERR_OK)
        return;
    if (follower->fd >= 0 && run == follower->run)
        return;
    FD_AUTO int fd = -1;
    if (job_run_file(run_fd, follower->stream, &fd, &size, &err) != ERR_OK)
        return;
    if (follower->fd >= 0) {
        buf_add_text(&follower->event, "id: 0\nevent: restarted\ndata: {}\n\n");
        follower->offset = 0;
    }
    fd_close(&follower->fd);
    follower->fd = fd;
    follower->run = run;
    fd = -1;
}

/* true: there were bytes. */
static bool add_output(struct follower *follower)
{
    unsigned char bytes[CHUNK_BYTES];
    if (follower->fd < 0)
        return false;
    ssize_t count = pread(follower->fd, bytes, sizeof(bytes), (off_t)follower->offset);
    if (count <= 0)
        return false;
    follower->offset += (uint64_t)count;
    buf_addf(&follower->event,
             "id: %llu\nevent: output\ndata: ", (unsigned long long)follower->offset);
    add_base64(&follower->event, bytes, (size_t)count);
    buf_add_text(&follower->event, "\n\n");
    return true;
}

static bool add_end(struct follower *follower)
{
    AUTO(job_free) struct job *job = NULL;
    struct err err = {0};
    if (job_store_get(follower->all->web->store, follower->job.tenant, &follower->job.id, &job,
                      &err) != ERR_OK)
        return false; /* asked again at the next look */
    json_t *view = job_view(job, true);
    char *text = view ? spare_text(json_dumps(view, JSON_COMPACT)) : NULL;
    json_decref(view);
    if (!text)
        return false;
    buf_addf(&follower->event,
             "id: %llu\nevent: end\ndata: ", (unsigned long long)follower->offset);
    buf_add_text(&follower->event, text);
    buf_add_text(&follower->event, "\n\n");
    free(text);
    return true;
}

bool follower_work(struct follower *follower)
{
    bool had_ended = follower->has_ended; /* before the file is read: then it is complete */
    bool last = false;
    open_run(follower);
    if (!add_output(follower) && had_ended)
        last = add_end(follower);
    if (follower->event.len == 0 && clock_mono_ms() - follower->written_ms > QUIET_MS)
        buf_add_text(&follower->event, ": waiting\n\n");
    if (follower->event.len > 0)
        follower->written_ms = clock_mono_ms();
    return last;
}
