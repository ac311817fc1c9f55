/* SPDX-License-Identifier: MIT */
/* GET /v1/jobs/{id}/files: pages of what was archived. */
#include "webapp/handlers.h"
#include "webapp/job_run.h"
#include "webapp/job_view.h"
#include "webapp/jobs.h"
#include "webapp/problem.h"

#include "common/base/fs.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#define FILES_MAX 10000
#define DEPTH_MAX 32
#define HREF_LIMIT ((size_t)4 * PATH_MAX)
#define PAGE_MAX 1000
/* A page with so many bytes of names is full: long names make it short, never large. */
#define PAGE_BYTES ((size_t)1024 * 1024)

/* The files of an archived run do not change, so a walk finds them in the same order again: a page
 * begins behind as many as were shown before. */
struct listing {
    const struct uuid *job;
    uint64_t before; /* files of the pages before */
    uint64_t limit;
    uint64_t passed;
    size_t bytes;
    json_t *files;
    bool is_full;   /* there is a further page */
    bool truncated; /* there are more than FILES_MAX */
};

static void list_folder(struct listing *listing, int folder_fd, const char *prefix, unsigned depth);

/* Where it can be fetched, whatever bytes its name has. */
static json_t *file_href(const struct uuid *job, struct sv path)
{
    BUF_AUTO struct buf href = BUF_INIT(HREF_LIMIT);
    char id[UUID_TEXT_SIZE];
    buf_addf(&href, "/v1/jobs/%s/files/", uuid_text(job, id));
    uri_encode(path, &href);
    return json_string(href.failed ? "" : buf_text(&href));
}

static void list_file(struct listing *listing, struct sv path, const struct stat *status)
{
    listing->truncated = listing->passed == FILES_MAX;
    listing->is_full =
        json_array_size(listing->files) == listing->limit || listing->bytes >= PAGE_BYTES;
    if (listing->truncated || listing->is_full || listing->passed++ < listing->before)
        return;
    int64_t changed_us = (int64_t)status->st_mtim.tv_sec * 1000000 + status->st_mtim.tv_nsec / 1000;
    json_t *href = file_href(listing->job, path);
    json_t *text = problem_text(path.ptr, path.len);
    listing->bytes += json_string_length(href) + json_string_length(text);
    json_array_append_new(listing->files, json_pack("{s:o,s:o,s:I,s:o}", "path", text, "href", href,
                                                    "bytes", (json_int_t)status->st_size,
                                                    "modified", view_time(changed_us)));
}

static void list_entry(struct listing *listing, int folder_fd, const char *prefix, const char *name,
                       unsigned depth)
{
    char path[PATH_MAX];
    struct stat status;
    int length = snprintf(path, sizeof(path), "%s%s%s", prefix, prefix[0] ? "/" : "", name);
    if (length < 0 || (size_t)length >= sizeof(path) ||
        fstatat(folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return;
    if (S_ISDIR(status.st_mode) && depth < DEPTH_MAX) {
        FD_AUTO int fd = openat(folder_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0)
            list_folder(listing, fd, path, depth + 1);
    } else if (S_ISREG(status.st_mode)) {
        list_file(listing, (struct sv){path, (size_t)length}, &status);
    }
}

/* NOLINTNEXTLINE(misc-no-recursion): at most DEPTH_MAX deep */
static void list_folder(struct listing *listing, int folder_fd, const char *prefix, unsigned depth)
{
    int fd = fcntl(folder_fd, F_DUPFD_CLOEXEC, 0);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        fd_close(&fd);
        return;
    }
    struct dirent *entry = NULL;
    while (!listing->truncated && !listing->is_full && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            list_entry(listing, folder_fd, prefix, entry->d_name, depth);
    }
    (void)closedir(dir);
}

/* What a cursor says: the files of the pages before, in the place of an id. */
static struct uuid position_of(uint64_t passed)
{
    struct uuid position = {{0}};
    memcpy(position.bytes, &passed, sizeof(passed));
    return position;
}

static enum err_code read_page(const struct request *req, struct sv bound, struct listing *listing,
                               struct err *err)
{
    struct sv cursor;
    struct uuid position;
    uint64_t most = req->web->cfg->limits_page_max;
    most = most < PAGE_MAX ? most : PAGE_MAX;
    listing->limit = most;
    enum err_code rc = request_number(req, "limit", 1, most, &listing->limit, err);
    if (rc || !uri_query(&req->uri, "cursor", &cursor))
        return rc;
    rc = cursor_read(&req->web->cursor_key, bound, cursor, &position, err);
    if (rc == ERR_OK)
        memcpy(&listing->before, position.bytes, sizeof(listing->before));
    return rc;
}

enum err_code job_files(struct request *req, struct err *err)
{
    AUTO(job_free) struct job *job = NULL;
    FD_AUTO int run_fd = -1;
    FD_AUTO int files_fd = -1;
    uint64_t run = 0;
    char id[UUID_TEXT_SIZE];
    char bound[UUID_TEXT_SIZE + 48];
    char cursor[CURSOR_TEXT_SIZE] = "";
    struct err absent = {0};
    enum err_code rc = job_of_path(req, &job, err);
    if (rc)
        return rc;
    enum err_code found = job_run_open(req->web->archive_fd, job, &run_fd, &run, &absent);
    struct listing listing = {.job = &job->id};
    (void)snprintf(bound, sizeof(bound), "files %s %llu", uuid_text(&job->id, id),
                   (unsigned long long)run);
    rc = read_page(req, sv_of(bound), &listing, err);
    if (rc)
        return rc;
    if (found == ERR_OK)
        found = fs_open_beneath(run_fd, "files", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, &files_fd,
                                &absent);
    listing.files = json_array();
    if (found == ERR_OK)
        list_folder(&listing, files_fd, "", 0);
    const struct uuid position = position_of(listing.passed);
    if (listing.is_full && !listing.truncated)
        cursor_write(&req->web->cursor_key, sv_of(bound), &position, cursor);
    reply_json(req, MHD_HTTP_OK,
               json_pack("{s:o,s:b,s:o}", "files", listing.files, "truncated", listing.truncated,
                         "nextCursor", view_text(cursor)));
    return ERR_OK;
}
