/* SPDX-License-Identifier: MIT */
#include "worker/disk_room.h"

#include <stdio.h>
#include <sys/statvfs.h>

#define KIB 1024u

const char *disk_room_text(int fd, const char *setting, const char *host,
                           char ret_text[DISK_ROOM_SIZE])
{
    struct statvfs disk;
    int used = snprintf(ret_text, DISK_ROOM_SIZE, "the disk of %.40s of host %.80s", setting, host);
    if (fstatvfs(fd, &disk) != 0)
        return ret_text;
    unsigned long long free_kib = (unsigned long long)disk.f_bavail * disk.f_frsize / KIB;
    unsigned long long all_kib = (unsigned long long)disk.f_blocks * disk.f_frsize / KIB;
    bool large = all_kib >= 10u * KIB;
    (void)snprintf(ret_text + used, DISK_ROOM_SIZE - (size_t)used, " has %llu of %llu %s free",
                   large ? free_kib / KIB : free_kib, large ? all_kib / KIB : all_kib,
                   large ? "MiB" : "KiB");
    return ret_text;
}
