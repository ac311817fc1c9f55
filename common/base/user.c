/* SPDX-License-Identifier: MIT */
#include "common/base/user.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <sys/stat.h>

#define ENTRY_BYTES ((size_t)16384)

enum err_code user_find(const char *name, struct user *ret_user, struct err *err)
{
    struct passwd entry;
    struct passwd *found = NULL;
    char *bytes = malloc(ENTRY_BYTES);
    if (!bytes)
        return err_set(err, ERR_NOMEM, "no memory for an account");
    int error = getpwnam_r(name, &entry, bytes, ENTRY_BYTES, &found);
    if (found)
        *ret_user = (struct user){entry.pw_uid, entry.pw_gid};
    free(bytes);
    if (found)
        return ERR_OK;
    return error ? err_set_errno(err, ERR_IO, error, "cannot look for the user %.63s", name)
                 : err_set(err, ERR_NOT_FOUND, "there is no user %.63s on this host", name);
}

enum err_code user_may_enter(const struct user *user, const char *path, struct err *err)
{
    char at[PATH_MAX];
    if (!realpath(path, at))
        return err_set_errno(err, ERR_IO, errno, "cannot look at %.500s", path);
    for (;;) {
        struct stat status;
        char *slash = strrchr(at, '/');
        const char *folder = at[0] ? at : "/";
        if (stat(folder, &status) != 0)
            return err_set_errno(err, ERR_IO, errno, "cannot look at %.500s", folder);
        mode_t bit = status.st_uid == user->uid   ? S_IXUSR
                     : status.st_gid == user->gid ? S_IXGRP
                                                  : S_IXOTH;
        if (!(status.st_mode & bit))
            return err_set(err, ERR_CONFIG, "the user with number %u may not enter %.500s",
                           (unsigned)user->uid, folder);
        if (!slash)
            return ERR_OK;
        *slash = 0;
    }
}
