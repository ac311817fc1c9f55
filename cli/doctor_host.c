/* SPDX-License-Identifier: MIT */
/* What the doctor sees of this machine: disks, keys, and the broker's own tool. */

#include "cli/doctor.h"

#include "common/base/fs.h"
#include "common/base/landlock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((uint64_t)1024 * 1024)
#define DISK_WARN_MIB 1024
#define DISK_FAULT_MIB 64
#define TOOL_MS 60000
#define OUTPUT_MAX ((size_t)4096)
#define PATH_SIZE 4096
#define ANSWER "{ok,"

extern char **environ;

/* ---- disks ---------------------------------------------------------------------------------- */

static void check_disk(struct doctor *doctor, const char *setting, const char *path)
{
    struct statvfs room;
    if (statvfs(path, &room) != 0) {
        doctor_find(doctor, DOCTOR_CANNOT_TELL, "run it where the folder is", "%s %s: %s", setting,
                    path, strerrordesc_np(errno));
        return;
    }
    uint64_t free_mib = (uint64_t)room.f_bavail * room.f_frsize / MIB;
    if (free_mib < DISK_FAULT_MIB)
        doctor_find(doctor, DOCTOR_FAULT, "make room: jobs fail with OUTPUT_DISK_FULL",
                    "%s %s has %" PRIu64 " MiB left", setting, path, free_mib);
    else if (free_mib < DISK_WARN_MIB || room.f_favail < 1000)
        doctor_find(doctor, DOCTOR_WARNING, "make room",
                    "%s %s has %" PRIu64 " MiB and %" PRIu64 " files left", setting, path, free_mib,
                    (uint64_t)room.f_favail);
    else
        doctor_find(doctor, DOCTOR_OK, "", "%s has %" PRIu64 " MiB left", setting, free_mib);
}

void doctor_disk(struct doctor *doctor)
{
    check_disk(doctor, "archive.root", doctor->cfg->archive_root);
    check_disk(doctor, "worker.work_root", doctor->cfg->worker_work_root);
}

/* ---- the archive ------------------------------------------------------------------------------
 */

static bool is_in_archive(const struct doctor *doctor, const struct site_output *output)
{
    char path[PATH_SIZE];
    char id[UUID_TEXT_SIZE];
    struct stat st;
    int length = snprintf(path, sizeof(path), "%s/%s/%s", doctor->cfg->archive_root, output->tenant,
                          uuid_text(&output->job, id));
    return length > 0 && (size_t)length < sizeof(path) && stat(path, &st) == 0;
}

/* Whether what the workers wrote is in the folder that this host sees. */
void doctor_archive(struct doctor *doctor)
{
    const char *root = doctor->cfg->archive_root;
    struct site_output *outputs = NULL;
    size_t count = 0;
    size_t seen = 0;
    struct err err = {0};
    struct stat st;
    if (stat(root, &st) != 0) {
        doctor_find(doctor, DOCTOR_CANNOT_TELL, "run it where sluice-web runs",
                    "archive.root %s: %s", root, strerrordesc_np(errno));
        return;
    }
    if (site_store_outputs(doctor->store, &outputs, &count, &err))
        doctor_find(doctor, DOCTOR_FAULT, "", "the newest jobs cannot be read: %s", err.text);
    for (size_t i = 0; i < count; i++)
        seen += is_in_archive(doctor, &outputs[i]);
    if (count > 0 && seen == 0)
        doctor_find(
            doctor, DOCTOR_WARNING,
            "mount the folder of the workers here, and give sluice-web, sluice-recovery and "
            "all workers the same archive.root; or run it where sluice-web runs",
            "archive.root %s of this host has none of the %zu outputs that workers kept last: "
            "it is not the folder that they write to",
            root, count);
    else if (!err.code)
        doctor_find(doctor, DOCTOR_OK, "", "%zu of the %zu outputs that workers kept last are here",
                    seen, count);
    free(outputs);
}

/* ---- confinement of jobs ----------------------------------------------------------------------
 */

void doctor_confine(struct doctor *doctor)
{
    int abi = landlock_abi();
    if (strcmp(doctor->cfg->worker_confine, "off") == 0)
        doctor_find(doctor, DOCTOR_WARNING, "remove worker.confine = off",
                    "jobs are not confined: they can read whatever their user can");
    else if (abi == 0)
        doctor_find(doctor, DOCTOR_WARNING,
                    "Linux 5.13 or later with 'landlock' among its security modules (lsm=)",
                    "this kernel offers no Landlock: jobs can read whatever their user can");
    else if (abi < LANDLOCK_SCOPES_ABI)
        doctor_find(doctor, DOCTOR_WARNING, "Linux 6.12 or later, or workers that start as root",
                    "Landlock has version %d here: files are confined, signals between jobs of one "
                    "user are not",
                    abi);
    else
        doctor_find(doctor, DOCTOR_OK, "", "Landlock has version %d on this host", abi);
}

/* ---- keys ----------------------------------------------------------------------------------- */

static bool judge_file(struct doctor *doctor, const char *path, const struct stat *st)
{
    size_t length = strlen(path);
    bool is_secret = length > 6 && strcmp(path + length - 6, ".hs256") == 0;
    if (st->st_mode & (S_IWGRP | S_IWOTH))
        doctor_find(doctor, DOCTOR_FAULT, "chmod go-w, and see who has changed it",
                    "others than its owner can write %s: they can make tokens", path);
    else if (is_secret && (st->st_mode & S_IROTH))
        doctor_find(doctor, DOCTOR_FAULT, "chmod o-r, and make a new secret",
                    "everybody can read %s: they can make tokens", path);
    else
        return true;
    return false;
}

static bool judge_folder(struct doctor *doctor, const char *path, size_t *files)
{
    DIR *folder = opendir(path);
    bool good = folder != NULL;
    if (!folder)
        doctor_find(doctor, DOCTOR_FAULT, "let the user of sluice-web read it", "%s: %s", path,
                    strerrordesc_np(errno));
    for (const struct dirent *entry = NULL; folder && (entry = readdir(folder));) {
        char file[PATH_SIZE];
        struct stat st;
        int length = snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
        if (entry->d_name[0] == '.' || length < 0 || (size_t)length >= sizeof(file) ||
            stat(file, &st) != 0)
            continue;
        (*files)++;
        good = judge_file(doctor, file, &st) && good;
    }
    if (folder)
        (void)closedir(folder);
    return good;
}

void doctor_keys(struct doctor *doctor)
{
    const char *root = doctor->cfg->auth_keys_dir;
    DIR *folder = opendir(root);
    size_t files = 0;
    bool good = true;
    if (!folder) {
        doctor_find(doctor, DOCTOR_CANNOT_TELL, "run it where sluice-web runs; check auth.keys_dir",
                    "%s: %s", root, strerrordesc_np(errno));
        return;
    }
    for (const struct dirent *entry = NULL; (entry = readdir(folder));) {
        char path[PATH_SIZE];
        struct stat st;
        int length = snprintf(path, sizeof(path), "%s/%s", root, entry->d_name);
        if (entry->d_name[0] == '.' || length < 0 || (size_t)length >= sizeof(path) ||
            stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
            continue;
        good = judge_file(doctor, path, &st) && good;
        good = judge_folder(doctor, path, &files) && good;
    }
    (void)closedir(folder);
    if (files == 0)
        doctor_find(doctor, DOCTOR_WARNING, "sluice token --make-key ES256 --tenant NAME",
                    "there is no key in %s: nobody can send a request", root);
    else if (good)
        doctor_find(doctor, DOCTOR_OK, "", "%zu, written by nobody else", files);
}

/* ---- the broker's tool ---------------------------------------------------------------------- */

static enum err_code start_tool(const char *program, const char *const *arguments, int out,
                                pid_t *ret_pid, struct err *err)
{
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions) != 0)
        return err_set(err, ERR_NOMEM, "no memory");
    int failed = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    if (!failed)
        failed = posix_spawn(ret_pid, program, &actions, NULL, (char *const *)(uintptr_t)arguments,
                             environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    return failed ? err_set_errno(err, ERR_IO, failed, "%s", program) : ERR_OK;
}

/* false: it said nothing more for too long. */
static bool read_all(int fd, struct buf *text)
{
    char bytes[512];
    for (;;) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        int ready = poll(&wait, 1, TOOL_MS);
        if (ready == 0)
            return false;
        ssize_t got = ready > 0 ? read(fd, bytes, sizeof(bytes)) : -1;
        if (got == 0 || (got < 0 && errno != EINTR))
            return true;
        if (got > 0)
            (void)buf_add(text, bytes, (size_t)got);
    }
}

static char *run_tool(const char *program, const char *const *arguments, struct err *err)
{
    BUF_AUTO struct buf text = BUF_INIT(OUTPUT_MAX);
    int ends[2];
    int status = 0;
    pid_t pid = 0;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        (void)err_set_errno(err, ERR_IO, errno, "a pipe");
        return NULL;
    }
    enum err_code rc = start_tool(program, arguments, ends[1], &pid, err);
    (void)close(ends[1]);
    if (rc == ERR_OK) {
        if (!read_all(ends[0], &text))
            (void)kill(pid, SIGKILL);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            rc = err_set(err, ERR_IO, "%s failed", program);
    }
    (void)close(ends[0]);
    return rc == ERR_OK && buf_add_text(&text, "") ? buf_take(&text) : NULL;
}

static void judge_timeout(struct doctor *doctor, int64_t timeout_ms)
{
    int64_t longest_ms = (int64_t)doctor->cfg->limits_max_minutes * 60000;
    if (timeout_ms > 0 && timeout_ms <= longest_ms)
        doctor_find(doctor, DOCTOR_WARNING,
                    "set consumer_timeout in rabbitmq.conf to more milliseconds than the longest "
                    "job allowed takes, or lower limits.max_minutes",
                    "consumer_timeout is %" PRId64 " s, the longest job allowed takes %" PRId64
                    " s: the channels of workers with long jobs are closed",
                    timeout_ms / 1000, longest_ms / 1000);
    else
        doctor_find(doctor, DOCTOR_OK, "", "longer than the longest job allowed");
}

void doctor_consumer_timeout(struct doctor *doctor)
{
    const char *program = doctor->cfg->doctor_rabbitmqctl;
    const char *const arguments[] = {program, "--quiet", "eval",
                                     "application:get_env(rabbit, consumer_timeout).", NULL};
    struct err err = {0};
    if (!*program) {
        doctor_find(doctor, DOCTOR_CANNOT_TELL,
                    "run it on the broker's machine with doctor.rabbitmqctl set, or read "
                    "'rabbitmqctl environment'",
                    "AMQP does not tell it; it should be longer than limits.max_minutes");
        return;
    }
    TEXT_AUTO char *text = run_tool(program, arguments, &err);
    const char *number = text ? strstr(text, ANSWER) : NULL;
    if (number) /* "undefined": there is none */
        judge_timeout(doctor, strtoll(number + strlen(ANSWER), NULL, 10));
    else
        doctor_find(doctor, DOCTOR_CANNOT_TELL, "check doctor.rabbitmqctl, and who may run it",
                    "%s", text ? "its answer is not understood" : err.text);
}
