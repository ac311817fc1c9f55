/* SPDX-License-Identifier: MIT */
#include "common/base/wake.h"

#include <sys/eventfd.h>
#include <unistd.h>

int wake_open(void)
{
    return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

void wake_raise(int wake_fd)
{
    uint64_t one = 1;
    ssize_t done = write(wake_fd, &one, sizeof(one));
    (void)done; /* a full counter is a raised one */
}

void wake_drain(int wake_fd)
{
    uint64_t count = 0;
    ssize_t done = read(wake_fd, &count, sizeof(count));
    (void)done; /* nothing to read: nothing was raised */
}
