/* SPDX-License-Identifier: MIT */
#include "worker/archive.h"

#include "common/base/fs.h"
#include "worker/fetch.h"
#include "worker/glob.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX 64
#define PATH_BYTES_MAX 4096

struct scan {
    const struct job_request *request;
    const struct archive_limits *limits;
    struct archive_plan *plan;
    size_t capacity;
    size_t files;              /* of those to be archived: also of those beyond a limit */
    uint64_t bytes;            /* the same */
    bool *met;                 /* by include: it covers a file */
    char path[PATH_BYTES_MAX]; /* of what is looked at */
    struct err *err;
};

static bool any_covers(const struct text_list *patterns, const char *path)
{
    for (size_t i = 0; i < patterns->count; i++) {
        if (glob_covers(patterns->items[i], path))
            return true;
    }
    return false;
}

bool archive_chooses(const struct job_request *request, const char *path)
{
    return any_covers(&request->includes, path) && !any_covers(&request->excludes, path);
}

static bool is_over(const struct scan *scan)
{
    return scan->files > scan->limits->files || scan->bytes > scan->limits->bytes;
}

static enum err_code add_file(struct scan *scan, uint64_t bytes)
{
    struct archive_plan *plan = scan->plan;
    scan->files++;
    scan->bytes = bytes > UINT64_MAX - scan->bytes ? UINT64_MAX : scan->bytes + bytes;
    if (is_over(scan)) /* counted on, so that people learn how much there is */
        return ERR_OK;
    if (plan->count == scan->capacity) {
        size_t capacity = scan->capacity ? scan->capacity * 2 : 16;
        struct archive_file *files = reallocarray(plan->files, capacity, sizeof(*files));
        if (!files)
            return err_set(scan->err, ERR_NOMEM, "no memory for the list of files");
        plan->files = files;
        scan->capacity = capacity;
    }
    char *path = strdup(scan->path);
    if (!path)
        return err_set(scan->err, ERR_NOMEM, "no memory for the list of files");
    plan->files[plan->count++] = (struct archive_file){path, bytes};
    plan->bytes += bytes;
    return ERR_OK;
}

static void note_met(struct scan *scan)
{
    for (size_t i = 0; i < scan->request->includes.count; i++)
        scan->met[i] = scan->met[i] || glob_covers(scan->request->includes.items[i], scan->path);
}

static enum err_code scan_dir(struct scan *scan, int dir_fd, size_t length, int depth);

static enum err_code scan_entry(struct scan *scan, int dir_fd, const char *name, size_t length,
                                int depth)
{
    struct stat st;
    int added =
        snprintf(scan->path + length, sizeof(scan->path) - length, "%s%s", length ? "/" : "", name);
    if (added < 0 || (size_t)added >= sizeof(scan->path) - length)
        return ERR_OK; /* longer than any path that a pattern can name */
    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return ERR_OK; /* gone meanwhile */
    if (S_ISREG(st.st_mode)) {
        note_met(scan);
        return archive_chooses(scan->request, scan->path) ? add_file(scan, (uint64_t)st.st_size)
                                                          : ERR_OK;
    }
    if (!S_ISDIR(st.st_mode) || depth == DEPTH_MAX)
        return ERR_OK;
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? ERR_OK : scan_dir(scan, fd, length + (size_t)added, depth + 1);
}

/* Takes the descriptor. Depth is limited, so the recursion is. */
static enum err_code scan_dir(struct scan *scan, int dir_fd, size_t length, int depth)
{
    DIR *dir = fdopendir(dir_fd);
    if (!dir) {
        int why = errno;
        fd_close(&dir_fd);
        return err_set_errno(scan->err, ERR_IO, why, "cannot read the job's directory");
    }
    enum err_code rc = ERR_OK;
    const struct dirent *entry = NULL;
    while (rc == ERR_OK && (entry = readdir(dir))) { /* NOLINT(concurrency-mt-unsafe): own DIR */
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            rc = scan_entry(scan, dirfd(dir), entry->d_name, length, depth);
    }
    (void)closedir(dir);
    return rc;
}

static void tell_unmet(const struct scan *scan)
{
    const struct text_list *includes = &scan->request->includes;
    char *text = scan->plan->unmet;
    size_t used = 0;
    for (size_t i = 0; i < includes->count; i++) {
        if (scan->met[i])
            continue;
        if (used + strlen(includes->items[i]) + 10 >= ARCHIVE_UNMET_SIZE) {
            (void)snprintf(text + used, ARCHIVE_UNMET_SIZE - used, "%s...", used ? ", " : "");
            return;
        }
        used += (size_t)snprintf(text + used, ARCHIVE_UNMET_SIZE - used, "%s'%s'", used ? ", " : "",
                                 includes->items[i]);
    }
}

static enum err_code check_limits(const struct scan *scan)
{
    if (scan->files > scan->limits->files)
        return err_set(scan->err, ERR_TOO_LARGE,
                       "%zu files are to be archived, at most %zu may be (archive.max_files): keep "
                       "fewer, or pack them into one",
                       scan->files, scan->limits->files);
    if (scan->bytes > scan->limits->bytes)
        return err_set(scan->err, ERR_TOO_LARGE,
                       "%llu bytes are to be archived, at most %llu may be (archive.max_bytes): "
                       "keep less, or pack it",
                       (unsigned long long)scan->bytes, (unsigned long long)scan->limits->bytes);
    return ERR_OK;
}

static enum err_code scan_home(struct scan *scan, int home_fd)
{
    struct stat st;
    int fd = openat(home_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0) {
        int why = errno;
        fd_close(&fd);
        return err_set_errno(scan->err, ERR_IO, why, "cannot open the job's directory");
    }
    scan->plan->owner = st.st_uid;
    enum err_code rc = scan_dir(scan, fd, 0, 0);
    if (rc == ERR_OK)
        rc = check_limits(scan);
    if (rc == ERR_OK)
        tell_unmet(scan);
    return rc;
}

enum err_code archive_scan(int home_fd, const struct job_request *request,
                           const struct archive_limits *limits, struct archive_plan *ret_plan,
                           struct err *err)
{
    ARCHIVE_PLAN_AUTO struct archive_plan plan = {0};
    struct scan *scan = calloc(1, sizeof(*scan));
    bool *met = calloc(request->includes.count + 1, sizeof(*met));
    enum err_code rc = ERR_NOMEM;
    if (scan && met) {
        *scan = (struct scan){
            .request = request, .limits = limits, .plan = &plan, .met = met, .err = err};
        rc = scan_home(scan, home_fd);
    } else {
        rc = err_set(err, ERR_NOMEM, "no memory for the list of files");
    }
    free(met);
    free(scan);
    if (rc)
        return rc;
    *ret_plan = plan;
    plan = (struct archive_plan){0};
    return ERR_OK;
}

static enum err_code make_parent(int target_fd, const char *path, struct err *err)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return ERR_OK;
    char *parent = strndup(path, (size_t)(slash - path));
    if (!parent)
        return err_set(err, ERR_NOMEM, "no memory for a path");
    enum err_code rc = fs_make_dirs(target_fd, parent, 0755, NULL, err);
    free(parent);
    return rc;
}

static enum err_code open_source(int home_fd, const char *path, uid_t owner, int *ret_fd,
                                 struct err *err)
{
    FD_AUTO int fd = -1;
    struct stat st;
    enum err_code rc =
        fs_open_plain(home_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0, &fd, err);
    if (rc == ERR_OK && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)))
        rc = err_set(err, ERR_INVALID, "it is not a regular file any more");
    if (rc == ERR_OK && st.st_nlink > 1 && st.st_uid != owner)
        rc = err_set(err, ERR_INVALID, "it is a hard link to a file of another user");
    if (rc)
        return rc;
    *ret_fd = fd;
    fd = -1;
    return ERR_OK;
}

static enum err_code copy_one(int home_fd, int target_fd, const char *path, uid_t owner,
                              struct fetch *fetch, struct err *err)
{
    FD_AUTO int from = -1;
    FD_AUTO int to = -1;
    enum err_code rc = open_source(home_fd, path, owner, &from, err);
    if (rc == ERR_OK)
        rc = make_parent(target_fd, path, err);
    if (rc == ERR_OK)
        rc = fs_open_plain(target_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0640, &to,
                           err);
    if (rc)
        return rc;
    fetch->fd = to;
    uint64_t bytes = 0;
    rc = fetch_copy(fetch, from, &bytes, err);
    if (rc == ERR_OK && fdatasync(to) != 0)
        rc = err_set_errno(err, ERR_IO, errno, "cannot write it to the disk");
    if (rc == ERR_OK)
        fetch->max_bytes -= bytes;
    return rc;
}

enum err_code archive_copy(int home_fd, int target_fd, const struct archive_plan *plan,
                           bool (*interrupted)(void *arg), void *arg, struct err *err)
{
    /* A file may still grow: what was planned is the limit of all together. */
    struct fetch fetch = {
        .max_bytes = plan->bytes, .deadline_ms = INT64_MAX, .interrupted = interrupted, .arg = arg};
    for (size_t i = 0; i < plan->count; i++) {
        enum err_code rc =
            copy_one(home_fd, target_fd, plan->files[i].path, plan->owner, &fetch, err);
        if (rc) {
            err_prefix(err, "%.150s: ", plan->files[i].path);
            return rc;
        }
    }
    return ERR_OK;
}

void archive_plan_done(struct archive_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++)
        free(plan->files[i].path);
    free(plan->files);
    *plan = (struct archive_plan){0};
}
