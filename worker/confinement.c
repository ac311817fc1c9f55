/* SPDX-License-Identifier: MIT */
#include "worker/confinement.h"

#include "common/base/fs.h"
#include "common/base/landlock.h"
#include "common/base/log.h"
#include "common/base/user.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONFIG_FOLDER "/etc/sluice"
#define DEFAULT_JOB_USER "nobody"
#define JOBS_FOLDER "jobs"

void confinement_done(struct confinement *confinement)
{
    free(confinement->read);
    free(confinement->write);
    free(confinement->deny);
    *confinement = (struct confinement){0};
}

/* A borrowed list that ends with NULL; room for so many more. */
static const char **copy_list(const struct config_list *list, size_t more)
{
    const char **copy = calloc(list->count + more + 1, sizeof(*copy));
    for (size_t i = 0; copy && i < list->count; i++)
        copy[i] = list->items[i];
    return copy;
}

static bool make_denied(const struct config *cfg, struct confinement *confinement)
{
    const char *const own[] = {
        CONFIG_FOLDER,     cfg->auth_keys_dir, cfg->worker_work_root, cfg->archive_root,
        cfg->amqp_tls_key, cfg->web_tls_key,   cfg->client_tls_key,
    };
    size_t count = cfg->worker_deny_paths.count;
    confinement->deny = copy_list(&cfg->worker_deny_paths, ARRAY_LEN(own) + cfg->sources.count);
    for (size_t i = 0; confinement->deny && i < ARRAY_LEN(own); i++) {
        if (own[i][0])
            confinement->deny[count++] = own[i];
    }
    for (size_t i = 0; confinement->deny && i < cfg->sources.count; i++)
        confinement->deny[count++] = cfg->sources.items[i];
    return confinement->deny != NULL;
}

static bool is_beneath(const char *path, const char *upper)
{
    size_t length = strlen(upper);
    while (length > 0 && upper[length - 1] == '/')
        length--;
    return strncmp(path, upper, length) == 0 && (path[length] == '/' || path[length] == 0);
}

/* The runner leaves out what is denied; a path that is nothing else is a mistake, which would show
 * in jobs only. */
static enum err_code check_paths(const char *key, const char *const *paths,
                                 const char *const *denied, struct err *err)
{
    for (; *paths; paths++) {
        char real[PATH_MAX];
        const char *path = realpath(*paths, real) ? real : *paths;
        for (const char *const *at = denied; *at; at++) {
            char real_denied[PATH_MAX];
            if (is_beneath(path, realpath(*at, real_denied) ? real_denied : *at))
                return err_set(err, ERR_CONFIG,
                               "%s: jobs may not reach %s, because %s is the service's own, or in "
                               "worker.deny_paths; take it out, or put what jobs need elsewhere",
                               key, *paths, *at);
        }
    }
    return ERR_OK;
}

static enum err_code check_kernel(const struct confinement *confinement, struct err *err)
{
    int abi = confinement->confine.mode == RUNNER_CONFINE_OFF ? 0 : landlock_abi();
    if (confinement->confine.mode == RUNNER_CONFINE_REQUIRED && abi == 0)
        return err_set(err, ERR_CONFIG,
                       "worker.confine is required, but this kernel offers no Landlock: use Linux "
                       "5.13 or later with 'landlock' in its list of security modules (lsm=), or a "
                       "container engine that lets it through; auto runs jobs without it");
    if (abi == 0)
        log_event(LOG_WARN, "worker.jobs.unconfined",
                  LOG_S("reason", confinement->confine.mode == RUNNER_CONFINE_OFF
                                      ? "worker.confine is off"
                                      : "this kernel offers no Landlock"));
    else
        log_event(LOG_INFO, "worker.jobs.confined", LOG_I("landlock", abi),
                  LOG_U("uid", confinement->confine.uid));
    return ERR_OK;
}

/* ---- the user ------------------------------------------------------------------------------ */

static enum err_code choose_user(const struct config *cfg, struct runner_confine *confine,
                                 struct err *err)
{
    struct user user = {geteuid(), getegid()};
    const char *name = cfg->worker_job_user;
    if (!name[0])
        name = geteuid() == 0 ? DEFAULT_JOB_USER : NULL;
    enum err_code rc = name ? user_find(name, &user, err) : ERR_OK;
    if (rc)
        return err_set(err, ERR_CONFIG, "worker.job_user: there is no user %.32s on this host",
                       name);
    if (user.uid != geteuid() && geteuid() != 0)
        return err_set(
            err, ERR_CONFIG,
            "worker.job_user is %.32s: only a worker that starts as root can run jobs as "
            "another user; start it as root, or take the setting out",
            name);
    confine->other_user = user.uid != geteuid();
    confine->uid = user.uid;
    confine->gid = user.gid;
    if (user.uid == 0)
        log_event(LOG_WARN, "worker.jobs.root");
    return ERR_OK;
}

enum err_code confinement_let_in(const struct confinement *confinement, const char *work_dir,
                                 int work_fd, struct err *err)
{
    FD_AUTO int jobs = -1;
    const struct user user = {confinement->confine.uid, confinement->confine.gid};
    if (!confinement->confine.other_user)
        return ERR_OK;
    enum err_code rc = fs_make_dirs(work_fd, JOBS_FOLDER, 0711, &jobs, err);
    if (rc == ERR_OK && (fchmod(jobs, 0711) != 0 || fchmod(work_fd, 0711) != 0))
        rc = err_set_errno(err, ERR_IO, errno, "cannot let jobs through %s", work_dir);
    if (rc == ERR_OK)
        rc = user_may_enter(&user, work_dir, err);
    if (rc == ERR_CONFIG)
        err_prefix(err, "worker.work_root: jobs could not reach their folders (chmod o+x, another "
                        "worker.work_root, or another worker.job_user): ");
    return rc;
}

enum err_code confinement_make(const struct config *cfg, struct confinement *ret_confinement,
                               struct err *err)
{
    struct confinement confinement = {
        .read = copy_list(&cfg->worker_read_paths, 0),
        .write = copy_list(&cfg->worker_write_paths, 0),
    };
    confinement.confine.mode = strcmp(cfg->worker_confine, "off") == 0    ? RUNNER_CONFINE_OFF
                               : strcmp(cfg->worker_confine, "auto") == 0 ? RUNNER_CONFINE_AUTO
                                                                          : RUNNER_CONFINE_REQUIRED;
    if (!confinement.read || !confinement.write || !make_denied(cfg, &confinement)) {
        confinement_done(&confinement);
        return err_set(err, ERR_NOMEM, "no memory for the confinement of jobs");
    }
    enum err_code rc = check_paths("worker.read_paths", confinement.read, confinement.deny, err);
    if (rc == ERR_OK)
        rc = check_paths("worker.write_paths", confinement.write, confinement.deny, err);
    if (rc == ERR_OK)
        rc = choose_user(cfg, &confinement.confine, err);
    if (rc == ERR_OK)
        rc = check_kernel(&confinement, err);
    if (rc) {
        confinement_done(&confinement);
        return rc;
    }
    confinement.confine.read = confinement.read;
    confinement.confine.write = confinement.write;
    confinement.confine.deny = confinement.deny;
    *ret_confinement = confinement;
    return ERR_OK;
}
