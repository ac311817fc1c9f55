/* SPDX-License-Identifier: MIT */
#ifndef WORKER_DISK_ROOM_H
#define WORKER_DISK_ROOM_H

/* disk_room: what is free on a disk, in words. Threads: any. Memory: none. */

#include "common/base/base.h"

#define DISK_ROOM_SIZE 200

/* "the disk of worker.work_root of host vm has 0 of 1024 MiB free". setting names what is on it.
 * Answers ret_text. */
const char *disk_room_text(int fd, const char *setting, const char *host,
                           char ret_text[DISK_ROOM_SIZE]);

#endif
