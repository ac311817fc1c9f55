/* SPDX-License-Identifier: MIT */

/* runner_load SLOTS JOBS [PROGRAM [confined]]: runs JOBS times PROGRAM (/bin/true) through a runner
 * of its own, SLOTS at a time, and prints how many it did in a second and what that cost the
 * runner. */

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "worker/runner/client.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SLOTS_MAX 256
#define WORD_SIZE 64

struct slot {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    struct uuid job;
    bool over;
};

static struct slot slots[SLOTS_MAX];
static unsigned slot_count;
static _Atomic int jobs_left;
static struct runner_client *client;
static char work[WORD_SIZE];
static char archive[WORD_SIZE];
static int work_fd = -1;
static const char *program = "/bin/true";
static const char *const no_paths[] = {NULL};
static const char *const denied[] = {"/etc/sluice", NULL};
static const struct runner_confine confined = {
    .mode = RUNNER_CONFINE_REQUIRED, .read = no_paths, .write = no_paths, .deny = denied};

static void on_exit_of(void *arg, const struct runner_record *record)
{
    (void)arg;
    for (unsigned i = 0; i < slot_count; i++) {
        struct slot *slot = &slots[i];
        (void)pthread_mutex_lock(&slot->lock);
        if (uuid_eq(&slot->job, &record->job)) {
            slot->over = true;
            (void)pthread_cond_signal(&slot->ended);
        }
        (void)pthread_mutex_unlock(&slot->lock);
    }
}

static void on_lost(void *arg, const struct err *err)
{
    (void)arg;
    (void)fprintf(stderr, "runner_load: %s\n", err->text);
    exit(EXIT_FAILURE); /* NOLINT(concurrency-mt-unsafe): nothing is to be saved */
}

static void must(enum err_code rc, const struct err *err)
{
    if (rc == ERR_OK)
        return;
    (void)fprintf(stderr, "runner_load: %s\n", err->text);
    exit(EXIT_FAILURE); /* NOLINT(concurrency-mt-unsafe): nothing is to be saved */
}

static void run_one(struct slot *slot)
{
    char id[UUID_TEXT_SIZE];
    char variable[WORD_SIZE];
    char output_dir[WORD_SIZE];
    char dir[RUNNER_DIR_SIZE];
    const char *argv[] = {program, NULL};
    const char *env[] = {"PATH=/usr/bin:/bin", "LANG=C", "SLUICE_FENCE=1", variable, NULL};
    struct runner_job held;
    struct err err = {0};
    bool existing = false;
    slot->over = false;
    slot->job = uuid_v7();
    (void)snprintf(variable, sizeof(variable), "SLUICE_JOB_ID=%s", uuid_text(&slot->job, id));
    (void)snprintf(output_dir, sizeof(output_dir), "load/%s/1", id);
    const struct runner_start start = {.job = slot->job,
                                       .fence = 1,
                                       .argv = argv,
                                       .env = env,
                                       .output_root = archive,
                                       .output_dir = output_dir,
                                       .output_max_bytes = 1024UL * 1024,
                                       .limits = {.wall_ms = 60000, .grace_ms = 1000}};
    must(runner_client_start(client, &start, &held, &existing, &err), &err);
    (void)pthread_mutex_lock(&slot->lock);
    while (!slot->over && !held.exited)
        (void)pthread_cond_wait(&slot->ended, &slot->lock);
    (void)pthread_mutex_unlock(&slot->lock);
    must(runner_client_forget(client, &slot->job, 1, &err), &err);
    (void)runner_job_dir(&slot->job, 1, dir);
    if (unlinkat(work_fd, dir, AT_REMOVEDIR) != 0)
        must(fs_remove_tree(work_fd, dir, &err), &err);
}

static void *slot_main(void *arg)
{
    while (atomic_fetch_sub(&jobs_left, 1) > 0)
        run_one(arg);
    return NULL;
}

/* User and system time of a process, without that of its children. */
static double cpu_of(pid_t pid)
{
    char path[WORD_SIZE];
    unsigned long user = 0;
    unsigned long kernel = 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    /* NOLINTNEXTLINE(cert-err34-c): the kernel writes the numbers */
    if (!file || fscanf(file, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
                        &kernel) != 2)
        user = kernel = 0;
    if (file)
        (void)fclose(file);
    return (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
}

int main(int argc, char **argv)
{
    char root[] = "/tmp/runner_load.XXXXXX";
    const struct runner_callbacks callbacks = {NULL, on_exit_of, on_lost};
    struct runner_client_config cfg = {
        .work_dir = work, .worker_name = "load", .runner_path = RUNNER_PATH};
    struct err err = {0};
    uint64_t wanted_slots = 8;
    uint64_t jobs = 2000;
    if (argc > 5 || (argc > 1 && !sv_u64(sv_of(argv[1]), SLOTS_MAX, &wanted_slots)) ||
        (argc > 2 && !sv_u64(sv_of(argv[2]), INT32_MAX, &jobs)) || !mkdtemp(root))
        return EXIT_FAILURE;
    if (argc > 3)
        program = argv[3];
    if (argc > 4)
        cfg.confine = &confined;
    slot_count = (unsigned)wanted_slots;
    atomic_store(&jobs_left, (int)jobs);
    (void)snprintf(work, sizeof(work), "%s/work", root);
    (void)snprintf(archive, sizeof(archive), "%s/archive", root);
    FD_AUTO int archive_fd = -1;
    must(fs_open_dir(work, true, &work_fd, &err), &err);
    must(fs_open_dir(archive, true, &archive_fd, &err), &err);
    cfg.worker_id = uuid_v7();
    must(runner_client_open(&cfg, &callbacks, &client, &err), &err);
    must(runner_client_ping(client, clock_boot_ms() + 600000, 0, &err), &err);
    double cpu = cpu_of(runner_client_pid(client));
    int64_t begin_us = clock_mono_us();
    for (unsigned i = 0; i < slot_count; i++) {
        (void)pthread_mutex_init(&slots[i].lock, NULL);
        (void)pthread_cond_init(&slots[i].ended, NULL);
    }
    for (unsigned i = 0; i < slot_count; i++)
        (void)!pthread_create(&slots[i].thread, NULL, slot_main, &slots[i]);
    for (unsigned i = 0; i < slot_count; i++)
        (void)pthread_join(slots[i].thread, NULL);
    double seconds = (double)(clock_mono_us() - begin_us) / 1e6;
    cpu = cpu_of(runner_client_pid(client)) - cpu;
    (void)printf("%u slots, %.0f jobs/s, runner %.1f us of CPU per job\n", slot_count,
                 (double)jobs / seconds, cpu * 1e6 / (double)jobs);
    runner_client_close(client, true);
    fd_close(&work_fd);
    FD_AUTO int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(fs_remove_tree(tmp, root + sizeof("/tmp"), &err), &err);
    return EXIT_SUCCESS;
}
