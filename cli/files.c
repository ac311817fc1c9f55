/* SPDX-License-Identifier: MIT */
/* files: the archived files of a job, listed or fetched. */

#include "cli/cli.h"
#include "common/base/fs.h"
#include "common/base/uuid.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>

struct config_flag flags_files[] = {
    {.name = "into", .letter = 'd', .argument = "FOLDER", .doc = "fetch them, into this folder"},
    {.name = "force", .doc = "replace files that are there"},
    {.name = NULL},
};

/* What was begun, and goes on with the next call: the job's own, whoever else's is there. */
#define PART_FORMAT "%s.%s.part"

static int list(struct cli *cli, json_t **ret_files)
{
    size_t i = 0;
    const json_t *file = NULL;
    CLI_JSON_AUTO json_t *all = NULL;
    CLI_JSON_AUTO json_t *wanted = json_array();
    BUF_AUTO struct buf path = BUF_INIT(4096);
    const char *pattern = cli->operand_count > 1 ? cli->operands[1] : "*";
    buf_add_text(&path, "/v1/jobs/");
    cli_url_add(&path, cli->operands[0]);
    buf_add_text(&path, "/files");
    int status = cli_call_pages(cli, buf_text(&path), "files", &all);
    json_array_foreach(all, i, file)
    {
        if (fnmatch(pattern, cli_text(file, "path"), 0) == 0)
            (void)json_array_append(wanted, (json_t *)(uintptr_t)file);
    }
    *ret_files = TAKE(wanted);
    return status;
}

static bool take_bytes(void *arg, struct sv bytes)
{
    int fd = *(const int *)arg;
    while (bytes.len > 0) {
        ssize_t done = write(fd, bytes.ptr, bytes.len);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        bytes = (struct sv){bytes.ptr + done, bytes.len - (size_t)done};
    }
    return true;
}

/* The bytes that are missing. */
static int fetch_rest(struct cli *cli, const json_t *file, int fd)
{
    struct stat about;
    char range[64];
    json_int_t size = json_integer_value(json_object_get(file, "bytes"));
    if (fstat(fd, &about) != 0)
        return cli_fail(CLI_REFUSED, "%s: %s", cli_text(file, "path"), strerrordesc_np(errno));
    if (about.st_size > size && ftruncate(fd, 0) == 0)
        about.st_size = 0;
    if (about.st_size == size)
        return CLI_DONE;
    (void)snprintf(range, sizeof(range), "Range: bytes=%lld-", (long long)about.st_size);
    struct http_request request = {.method = "GET",
                                   .path = cli_text(file, "href"),
                                   .header = about.st_size > 0 ? range : NULL,
                                   .on_bytes = take_bytes,
                                   .arg = &fd};
    HTTP_ANSWER_AUTO struct http_answer answer = {0};
    int status = cli_send(cli, &request, &answer);
    if (status == CLI_DONE && (fstat(fd, &about) != 0 || about.st_size != size))
        return cli_fail(CLI_REFUSED, "%s: %lld of %lld bytes came; the same command goes on",
                        cli_text(file, "path"), (long long)about.st_size, (long long)size);
    return status;
}

/* No name of the archive leads out of the folder or talks to a terminal; no file is replaced
 * unasked. */
static int fetch(struct cli *cli, int dir, const char *job, const json_t *file)
{
    struct err err = {0};
    char path[1032];
    char part[sizeof(path) + UUID_TEXT_SIZE + sizeof(PART_FORMAT)];
    FD_AUTO int fd = -1;
    if (!fs_path_is_safe(sv_of(cli_text(file, "path"))))
        return cli_fail(CLI_REFUSED, "%s: not fetched: the name leads out of the folder",
                        cli_text(file, "path"));
    (void)snprintf(path, sizeof(path), "%s", cli_text(file, "path"));
    cli_make_inert(path);
    for (char *c = path; *c; c++)
        *c = (char)(*c == '\n' || *c == '\t' ? '?' : *c);
    (void)snprintf(part, sizeof(part), PART_FORMAT, path, job);
    char *slash = strrchr(path, '/');
    if (slash) {
        *slash = 0;
        if (fs_make_dirs(dir, path, 0777, NULL, &err))
            return cli_fail_err(CLI_REFUSED, &err);
        *slash = '/';
    }
    if (!cli_has(cli, "force") &&
        fs_open_beneath(dir, path, O_PATH | O_NOFOLLOW, 0, &fd, &err) != ERR_NOT_FOUND)
        return cli_fail(CLI_REFUSED, "%s is there already; --force replaces it", path);
    err_clear(&err);
    if (fs_open_beneath(dir, part, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0666, &fd, &err))
        return cli_fail_err(CLI_REFUSED, &err);
    int status = fetch_rest(cli, file, fd);
    if (status != CLI_DONE)
        return status;
    unsigned flags = cli_has(cli, "force") ? 0 : RENAME_NOREPLACE;
    if (renameat2(dir, part, dir, path, flags) != 0)
        return cli_fail(CLI_REFUSED, "%s: %s", path, strerrordesc_np(errno));
    cli_put(stdout, path);
    (void)fputc('\n', stdout);
    return CLI_DONE;
}

int cmd_files(struct cli *cli)
{
    static const struct cli_column columns[] = {
        {"PATH", "path"}, {"BYTES", "bytes"}, {"MODIFIED", "modified"}};
    struct err err = {0};
    size_t i = 0;
    const json_t *file = NULL;
    FD_AUTO int dir = -1;
    CLI_JSON_AUTO json_t *files = NULL;
    int worst = list(cli, &files);
    if (worst != CLI_DONE)
        return worst;
    if (!cli_has(cli, "into")) {
        cli_print_list(cli, files, columns, ARRAY_LEN(columns), "path");
        return CLI_DONE;
    }
    if (fs_open_dir(cli_value(cli, "into", "."), true, &dir, &err))
        return cli_fail_err(CLI_REFUSED, &err);
    if (json_array_size(files) == 0)
        return cli_fail(CLI_REFUSED, "job %s has no such files", cli->operands[0]);
    json_array_foreach(files, i, file)
    {
        int status = fetch(cli, dir, cli->operands[0], file);
        worst = status > worst ? status : worst;
    }
    return worst;
}
