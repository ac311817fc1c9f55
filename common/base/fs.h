/* SPDX-License-Identifier: MIT */
#ifndef COMMON_BASE_FS_H
#define COMMON_BASE_FS_H

/* fs: files, always relative to a directory that is already open and never outside it
 * (openat2 with RESOLVE_BENEATH, no magic links; Linux 5.6).
 * Threads: any. Memory: descriptors and buffers are given to the caller. */

#include "common/base/base.h"
#include "common/base/buf.h"
#include "common/base/err.h"

#include <sys/types.h>

/* Opens a directory by its path (this one call resolves freely: the path is configuration). */
MUST_USE enum err_code fs_open_dir(const char *path, bool create, int *ret_fd, struct err *err);
/* flags as open(2); O_CLOEXEC is added. Symbolic links are followed only beneath dir_fd, and not
 * at all in the last component when O_NOFOLLOW is given. ERR_NOT_FOUND if it is not there,
 * ERR_INVALID if the path would leave dir_fd, ERR_IO otherwise. */
MUST_USE enum err_code fs_open_beneath(int dir_fd, const char *path, int flags, mode_t mode,
                                       int *ret_fd, struct err *err);
/* The same, but no symbolic link is followed in any component. */
MUST_USE enum err_code fs_open_plain(int dir_fd, const char *path, int flags, mode_t mode,
                                     int *ret_fd, struct err *err);
/* mkdir -p beneath dir_fd; opens the last one if ret_fd is not NULL. */
MUST_USE enum err_code fs_make_dirs(int dir_fd, const char *path, mode_t mode, int *ret_fd,
                                    struct err *err);
/* Whole file into buf, within buf's limit (ERR_TOO_LARGE). */
MUST_USE enum err_code fs_read(int dir_fd, const char *path, struct buf *ret_bytes,
                               struct err *err);
/* Replaces the file: write beside it, fsync, rename, fsync the directory. The name has no '/'. */
MUST_USE enum err_code fs_write_sync(int dir_fd, const char *name, struct sv bytes, mode_t mode,
                                     struct err *err);
/* rm -rf beneath dir_fd, symbolic links not followed; a missing path is no error. Any depth, and
 * any mode that the owner may change: directories are made writable first. After a failure
 * everything else is gone all the same; the first one is reported. */
MUST_USE enum err_code fs_remove_tree(int dir_fd, const char *path, struct err *err);
/* The bytes of the files beneath path, together, symbolic links not followed; 0 for a missing one.
 */
MUST_USE enum err_code fs_tree_size(int dir_fd, const char *path, uint64_t *ret_bytes,
                                    struct err *err);
/* A relative path that cannot leave its root: not empty, no "..", no empty part, no NUL, no
 * leading '/', at most 1024 bytes. */
bool fs_path_is_safe(struct sv path);

#endif
