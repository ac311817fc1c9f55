/* SPDX-License-Identifier: MIT */
#include "webapp/follow.h"
#include "webapp/handlers.h"
#include "webapp/job_run.h"
#include "webapp/job_view.h"
#include "webapp/jobs.h"
#include "webapp/range.h"

#include "common/base/fs.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <unistd.h>

#define BYTES_TYPE "application/octet-stream"
#define NAME_LIMIT ((size_t)4096)

/* ---- bytes ----------------------------------------------------------------------------------- */

/* The range that was asked for of a file; takes the descriptor. */
static enum err_code reply_file(struct request *req, int *take_fd, uint64_t size, struct err *err)
{
    char text[80];
    struct range range = range_parse(request_header(req, HEADER_RANGE), size);
    if (range.kind == RANGE_BEYOND) {
        (void)err_set(err, ERR_RANGE, "there are %llu bytes", (unsigned long long)size);
        reply_error(req, err);
        (void)snprintf(text, sizeof(text), "bytes */%llu", (unsigned long long)size);
        reply_header(req, "Content-Range", text);
        return ERR_OK;
    }
    struct MHD_Response *response =
        MHD_create_response_from_fd_at_offset64(range.length, *take_fd, range.offset);
    if (!response)
        return err_set(err, ERR_NOMEM, "out of memory");
    *take_fd = -1;
    bool part = range.kind == RANGE_PART;
    reply_response(req, part ? MHD_HTTP_PARTIAL_CONTENT : MHD_HTTP_OK, response);
    reply_header(req, "Content-Type", BYTES_TYPE);
    reply_header(req, "Accept-Ranges", "bytes");
    (void)snprintf(text, sizeof(text), "bytes %llu-%llu/%llu", (unsigned long long)range.offset,
                   (unsigned long long)(range.offset + range.length - 1), (unsigned long long)size);
    if (part)
        reply_header(req, "Content-Range", text);
    return ERR_OK;
}

static void reply_nothing(struct request *req)
{
    reply_empty(req, MHD_HTTP_OK);
    reply_header(req, "Content-Type", BYTES_TYPE);
    reply_header(req, "Accept-Ranges", "bytes");
}

static enum err_code stream_of(const struct request *req, const char **ret_stream, struct err *err)
{
    static const char *const streams[] = {"stdout", "stderr"};
    for (size_t i = 0; i < ARRAY_LEN(streams); i++) {
        if (sv_is(req->match.params[1], streams[i])) {
            *ret_stream = streams[i];
            return ERR_OK;
        }
    }
    return err_set(err, ERR_NOT_FOUND, "a job has the outputs stdout and stderr");
}

/* Last-Event-ID: how far the client has got. */
static enum err_code follow(struct request *req, const struct job *job, const char *stream,
                            struct err *err)
{
    struct sv last = request_header(req, HEADER_LAST_EVENT_ID);
    uint64_t offset = 0;
    if (last.len > 0 && !sv_u64(last, INT64_MAX, &offset))
        return err_set_at(err, ERR_INVALID, "Last-Event-ID", "it is the id of an event: a number");
    return follow_start(req, job, stream, offset, err);
}

/* Nothing is there: the job did not run, or wrote nothing, or it did and that has been removed (by
 * retention, just before the job itself goes, or by somebody's hand). */
static enum err_code reply_absent(struct request *req, const struct job *job, const char *stream,
                                  struct err *err)
{
    const struct job_stream *kept = strcmp(stream, "stdout") == 0 ? &job->out : &job->errs;
    if (job_state_ends(job->status) && kept->kept_bytes > 0)
        return err_set(err, ERR_GONE,
                       "the %s of this job, %" PRIu64 " bytes, is not in the archive that this "
                       "service sees: it was removed, or the folder of the workers (archive.root) "
                       "is not mounted here; administrators: 'sluice doctor'",
                       stream, kept->kept_bytes);
    reply_nothing(req);
    return ERR_OK;
}

enum err_code job_output(struct request *req, struct err *err)
{
    AUTO(job_free) struct job *job = NULL;
    FD_AUTO int run_fd = -1;
    FD_AUTO int fd = -1;
    const char *stream = "stdout";
    uint64_t run = 0;
    uint64_t size = 0;
    bool follows = false;
    enum err_code rc = request_flag(req, "follow", &follows, err);
    if (rc == ERR_OK)
        rc = stream_of(req, &stream, err);
    if (rc == ERR_OK)
        rc = job_of_path(req, &job, err);
    if (rc)
        return rc;
    if (follows)
        return follow(req, job, stream, err);
    struct err absent = {0};
    rc = job_run_open(req->web->archive_fd, job, &run_fd, &run, &absent);
    if (rc == ERR_OK)
        rc = job_run_file(run_fd, stream, &fd, &size, &absent);
    if (rc == ERR_OK && size > 0)
        return reply_file(req, &fd, size, err);
    if (rc != ERR_OK && rc != ERR_NOT_FOUND) {
        *err = absent;
        return rc;
    }
    return reply_absent(req, job, stream, err);
}

/* ---- an archived file ------------------------------------------------------------------------ */

/* Saved, never shown: what a job wrote is nobody's page. */
static void reply_name(struct request *req)
{
    BUF_AUTO struct buf text = BUF_INIT(NAME_LIMIT);
    buf_add_text(&text, "attachment; filename*=UTF-8''");
    uri_encode(req->uri.segments[req->uri.segment_count - 1], &text);
    if (!text.failed)
        reply_header(req, "Content-Disposition", buf_text(&text));
}

/* The parts of the path behind /files/, joined again; a part that holds a '/' was encoded to get
 * past the split and is refused. */
static enum err_code file_path(const struct request *req, struct buf *ret_path, struct err *err)
{
    buf_add_text(ret_path, "files");
    for (size_t i = req->match.rest_at; i < req->uri.segment_count; i++) {
        struct sv part = req->uri.segments[i];
        if (part.len == 0 || memchr(part.ptr, '/', part.len))
            return err_set(err, ERR_INVALID, "the path of a file has no empty parts and no %%2F");
        buf_add_text(ret_path, "/");
        buf_add_sv(ret_path, part);
    }
    if (ret_path->starved)
        return err_set(err, ERR_NOMEM, "out of memory");
    if (ret_path->failed || !fs_path_is_safe(buf_sv(ret_path)))
        return err_set(err, ERR_INVALID, "the path of a file stays below its folder");
    return ERR_OK;
}

enum err_code job_file(struct request *req, struct err *err)
{
    AUTO(job_free) struct job *job = NULL;
    BUF_AUTO struct buf path = BUF_INIT(PATH_MAX);
    FD_AUTO int run_fd = -1;
    FD_AUTO int fd = -1;
    uint64_t run = 0;
    uint64_t size = 0;
    enum err_code rc = file_path(req, &path, err);
    if (rc == ERR_OK)
        rc = job_of_path(req, &job, err);
    if (rc == ERR_OK)
        rc = job_run_open(req->web->archive_fd, job, &run_fd, &run, err);
    if (rc == ERR_OK)
        rc = job_run_file(run_fd, buf_text(&path), &fd, &size, err);
    if (rc)
        return rc;
    if (size > 0)
        rc = reply_file(req, &fd, size, err);
    else
        reply_nothing(req);
    if (rc == ERR_OK && req->reply.status < MHD_HTTP_BAD_REQUEST)
        reply_name(req);
    return rc;
}
