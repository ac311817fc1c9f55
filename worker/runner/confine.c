/* SPDX-License-Identifier: MIT */
#include "worker/runner/confine.h"

#include "common/base/clock.h"
#include "common/base/landlock.h"
#include "common/base/log.h"
#include "worker/runner/places.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#define AGE_MAX_MS 30000

struct confine {
    pthread_mutex_t lock;
    json_t *wanted; /* as the worker said it */
    enum runner_confine_mode mode;
    struct confine_job user; /* its ruleset is not used */
    int abi;
    struct places *places; /* NULL: to be opened */
    int64_t opened_ms;
};

enum err_code confine_new(struct confine **ret_confine, struct err *err)
{
    struct confine *confine = calloc(1, sizeof(*confine));
    if (!confine)
        return err_set(err, ERR_NOMEM, "no memory for the confinement of jobs");
    (void)pthread_mutex_init(&confine->lock, NULL);
    *ret_confine = confine;
    return ERR_OK;
}

void confine_free(struct confine *confine)
{
    if (!confine)
        return;
    places_free(confine->places);
    json_decref(confine->wanted);
    (void)pthread_mutex_destroy(&confine->lock);
    free(confine);
}

static bool is_path_list(const json_t *list)
{
    size_t i = 0;
    const json_t *path = NULL;
    if (!json_is_array(list))
        return false;
    json_array_foreach(list, i, path)
    {
        if (!json_is_string(path) || json_string_value(path)[0] != '/')
            return false;
    }
    return true;
}

static void take(struct confine *confine, const json_t *wanted)
{
    const json_t *uid = json_object_get(wanted, "uid");
    json_decref(confine->wanted);
    confine->wanted = json_deep_copy(wanted);
    confine->mode = (enum runner_confine_mode)json_integer_value(json_object_get(wanted, "mode"));
    confine->user = (struct confine_job){
        .ruleset = -1,
        .filtered = confine->mode != RUNNER_CONFINE_OFF,
        .other_user = uid != NULL,
        .uid = (uid_t)json_integer_value(uid),
        .gid = (gid_t)json_integer_value(json_object_get(wanted, "gid")),
    };
    confine->abi = confine->mode == RUNNER_CONFINE_OFF ? 0 : landlock_abi();
    places_free(TAKE(confine->places));
    if (confine->mode == RUNNER_CONFINE_AUTO && confine->abi == 0)
        log_event(LOG_WARN, "runner.jobs.unconfined");
}

enum err_code confine_set(struct confine *confine, const json_t *wanted, struct err *err)
{
    const json_t *uid = json_object_get(wanted, "uid");
    const json_t *gid = json_object_get(wanted, "gid");
    json_int_t mode = json_integer_value(json_object_get(wanted, "mode"));
    bool good = json_is_object(wanted) && json_is_integer(json_object_get(wanted, "mode")) &&
                mode >= 0 && mode <= RUNNER_CONFINE_REQUIRED && !uid == !gid &&
                is_path_list(json_object_get(wanted, "read")) &&
                is_path_list(json_object_get(wanted, "write")) &&
                is_path_list(json_object_get(wanted, "deny"));
    if (uid && (!json_is_integer(uid) || !json_is_integer(gid) || json_integer_value(uid) < 1 ||
                json_integer_value(gid) < 0))
        good = false;
    if (!good)
        return err_set(err, ERR_INVALID, "the member confine of hello is not as it should be");
    (void)pthread_mutex_lock(&confine->lock);
    if (!json_equal(confine->wanted, wanted))
        take(confine, wanted);
    (void)pthread_mutex_unlock(&confine->lock);
    return ERR_OK;
}

/* ---- a launch ------------------------------------------------------------------------------ */

static enum err_code refresh(struct confine *confine, struct err *err)
{
    if (confine->places &&
        (clock_mono_ms() - confine->opened_ms > AGE_MAX_MS || places_changed(confine->places)))
        places_free(TAKE(confine->places));
    if (confine->places)
        return ERR_OK;
    confine->opened_ms = clock_mono_ms();
    return places_open(confine->wanted, landlock_handled(confine->abi), &confine->places, err);
}

static enum err_code make_ruleset(struct confine *confine, int working_dir, int *ret_fd,
                                  struct err *err)
{
    enum err_code rc = refresh(confine, err);
    if (rc)
        return rc;
    FD_AUTO int fd = landlock_create(confine->abi);
    if (fd < 0 || !places_allow(confine->places, fd) ||
        landlock_allow(fd, working_dir, places_work(landlock_handled(confine->abi))) != 0)
        return err_set_errno(err, ERR_IO, errno, "cannot make the rules of Landlock for a job");
    *ret_fd = fd;
    fd = -1;
    return ERR_OK;
}

enum err_code confine_job(struct confine *confine, int working_dir, struct confine_job *ret_job,
                          struct err *err)
{
    enum err_code rc = ERR_OK;
    (void)pthread_mutex_lock(&confine->lock);
    struct confine_job job = confine->user;
    job.working_dir = working_dir;
    job.ruleset = -1;
    if (confine->mode == RUNNER_CONFINE_REQUIRED && confine->abi == 0)
        rc = err_set_errno(err, ERR_IO, EOPNOTSUPP, "this kernel offers no Landlock");
    else if (confine->mode != RUNNER_CONFINE_OFF && confine->abi > 0)
        rc = make_ruleset(confine, working_dir, &job.ruleset, err);
    (void)pthread_mutex_unlock(&confine->lock);
    if (rc == ERR_OK)
        *ret_job = job;
    return rc;
}
