/* SPDX-License-Identifier: MIT */
#include "worker/runner/starter.h"

#include "common/base/fault.h"
#include "common/base/fs.h"
#include "common/base/wake.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#define THREADS 2 /* a program on a disk that hangs leaves one for the others */

struct tasks {
    struct start_task *first;
    struct start_task **last;
};

struct starter {
    int work_dir;
    struct journal *journal;
    struct confine *confine;
    int wake;
    struct launcher *launchers[THREADS];
    pthread_t threads[THREADS];
    size_t thread_count;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t news;
    size_t begun; /* threads that took their launcher */
    bool stop;
    struct tasks asked;
    struct tasks done;
};

static void tasks_add(struct tasks *tasks, struct start_task *task)
{
    task->next = NULL;
    if (!tasks->first)
        tasks->last = &tasks->first;
    *tasks->last = task;
    tasks->last = &task->next;
}

static struct start_task *tasks_take(struct tasks *tasks)
{
    struct start_task *task = tasks->first;
    if (task)
        tasks->first = task->next;
    return task;
}

/* Mostly it is to be made, and what it is in is there. */
static enum err_code open_working_dir(const struct starter *starter,
                                      const struct runner_start *start, int *ret_fd,
                                      struct err *err)
{
    const char *path = start->working_dir;
    if ((mkdirat(starter->work_dir, path, 0700) == 0 || errno == EEXIST) &&
        fs_open_beneath(starter->work_dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, ret_fd,
                        NULL) == ERR_OK)
        return ERR_OK;
    return fs_make_dirs(starter->work_dir, path, 0700, ret_fd, err);
}

/* Path by path: so nobody else may be in there meanwhile, who could put a link to other files into
 * the way. A folder is given after all that is in it, and until the last one, the job's own, is
 * given, it keeps everybody out. */
static int give_entries(int working_dir, const struct confine_job *confinement)
{
    char path[64];
    char *roots[] = {path, NULL};
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d/.", working_dir);
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    const FTSENT *entry = NULL;
    int error = tree ? 0 : errno;
    errno = 0;
    while (tree && !error && (entry = fts_read(tree))) {
        if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR || entry->fts_info == FTS_NS)
            error = entry->fts_errno;
        else if (entry->fts_info != FTS_D &&
                 lchown(entry->fts_accpath, confinement->uid, confinement->gid) != 0)
            error = errno;
    }
    if (tree && !error && errno != 0)
        error = errno;
    if (tree)
        (void)fts_close(tree);
    return error;
}

/* All that is there was put there by the worker: no process of the job has been yet. Once it is
 * given, at a start that failed later, jobs of the same user may be in it. */
static enum err_code give_folder(int working_dir, const struct confine_job *confinement,
                                 struct err *err)
{
    struct stat status;
    int error = fstat(working_dir, &status) == 0 ? 0 : errno;
    if (!error && status.st_uid == confinement->uid)
        return ERR_OK;
    if (!error && fchmod(working_dir, 0700) != 0)
        error = errno;
    if (!error)
        error = give_entries(working_dir, confinement);
    return error ? err_set_errno(err, ERR_IO, error, "cannot give the job its folder") : ERR_OK;
}

static void start_one(struct starter *starter, struct launcher *launcher, struct start_task *task)
{
    FD_AUTO int working_dir = -1;
    struct confine_job confinement = {.ruleset = -1};
    task->step = "setup";
    /* Before there is a process: none is without a note. */
    task->rc = journal_note(starter->journal, task->entry, &task->job, &task->err);
    FAULT("runner.start.noted");
    if (task->rc)
        return;
    task->step = "chdir";
    task->rc = open_working_dir(starter, &task->start, &working_dir, &task->err);
    if (task->rc)
        return;
    task->step = "confine";
    task->rc = confine_job(starter->confine, working_dir, &confinement, &task->err);
    if (task->rc == ERR_OK && confinement.other_user)
        task->rc = give_folder(working_dir, &confinement, &task->err);
    if (task->rc) {
        fd_close(&confinement.ruleset);
        return;
    }
    task->rc =
        launch(launcher, &task->start, &confinement, &task->watch, &task->launched, &task->err);
    fd_close(&confinement.ruleset);
    if (task->launched.step)
        task->step = task->launched.step;
    FAULT("runner.launched");
}

static void *starter_main(void *arg)
{
    struct starter *starter = arg; /* close joins us before it frees it */
    (void)pthread_mutex_lock(&starter->lock);
    struct launcher *launcher = starter->launchers[starter->begun++];
    for (;;) {
        struct start_task *task = tasks_take(&starter->asked);
        if (!task && starter->stop)
            break;
        if (!task) {
            (void)pthread_cond_wait(&starter->news, &starter->lock);
            continue;
        }
        (void)pthread_mutex_unlock(&starter->lock);
        start_one(starter, launcher, task);
        (void)pthread_mutex_lock(&starter->lock);
        bool first = !starter->done.first;
        tasks_add(&starter->done, task);
        if (first)
            wake_raise(starter->wake);
    }
    (void)pthread_mutex_unlock(&starter->lock);
    return NULL;
}

static enum err_code start_threads(struct starter *starter, uint64_t soft_files, struct err *err)
{
    sigset_t all;
    sigset_t before;
    enum err_code rc = ERR_OK;
    for (size_t i = 0; i < THREADS && rc == ERR_OK; i++)
        rc = launcher_open(soft_files, &starter->launchers[i], err);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    while (rc == ERR_OK && starter->thread_count < THREADS) {
        int error =
            pthread_create(&starter->threads[starter->thread_count], NULL, starter_main, starter);
        if (error)
            rc = err_set_errno(err, ERR_NOMEM, error, "cannot start a thread");
        else
            starter->thread_count++;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

enum err_code starter_open(const struct starter_setup *setup, struct starter **ret_starter,
                           struct err *err)
{
    struct starter *starter = calloc(1, sizeof(*starter));
    if (!starter)
        return err_set(err, ERR_NOMEM, "no memory for a starter");
    starter->work_dir = setup->work_dir;
    starter->journal = setup->journal;
    starter->confine = setup->confine;
    starter->wake = setup->wake;
    (void)pthread_mutex_init(&starter->lock, NULL);
    (void)pthread_cond_init(&starter->news, NULL);
    enum err_code rc = start_threads(starter, setup->soft_files, err);
    if (rc) {
        starter_close(starter);
        return rc;
    }
    *ret_starter = starter;
    return ERR_OK;
}

void starter_close(struct starter *starter)
{
    if (!starter)
        return;
    (void)pthread_mutex_lock(&starter->lock);
    starter->stop = true;
    (void)pthread_cond_broadcast(&starter->news);
    (void)pthread_mutex_unlock(&starter->lock);
    for (size_t i = 0; i < starter->thread_count; i++)
        (void)pthread_join(starter->threads[i], NULL);
    for (size_t i = 0; i < THREADS; i++)
        launcher_free(starter->launchers[i]);
    (void)pthread_cond_destroy(&starter->news);
    (void)pthread_mutex_destroy(&starter->lock);
    free(starter);
}

void starter_ask(struct starter *starter, struct start_task *task)
{
    (void)pthread_mutex_lock(&starter->lock);
    tasks_add(&starter->asked, task);
    (void)pthread_cond_signal(&starter->news);
    (void)pthread_mutex_unlock(&starter->lock);
}

struct start_task *starter_done(struct starter *starter)
{
    (void)pthread_mutex_lock(&starter->lock);
    struct start_task *task = tasks_take(&starter->done);
    (void)pthread_mutex_unlock(&starter->lock);
    return task;
}
