/* SPDX-License-Identifier: MIT */
/* clock_step: preloaded into a program, it moves the program's wall clock by as many seconds as
 * stand in the file CLOCK_STEP_FILE (an int64_t), from one moment to the next. The monotonic clock
 * and the machine's own clock stay as they are.
 * Threads: any. */

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *step_s;

__attribute__((constructor)) static void map_step(void)
{
    const char *path = getenv("CLOCK_STEP_FILE"); /* NOLINT(concurrency-mt-unsafe): no thread yet */
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *map = mmap(NULL, sizeof(*step_s), PROT_READ, MAP_SHARED, fd, 0);
    (void)close(fd);
    if (map != MAP_FAILED)
        step_s = map;
}

int clock_gettime(clockid_t which, struct timespec *ret_now)
{
    int rc = (int)syscall(SYS_clock_gettime, which, ret_now);
    if (rc == 0 && step_s && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE))
        ret_now->tv_sec += *step_s;
    return rc;
}

int gettimeofday(struct timeval *restrict ret_now, void *restrict unused)
{
    struct timespec now = {0};
    (void)unused;
    int rc = clock_gettime(CLOCK_REALTIME, &now);
    *ret_now = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return rc;
}

time_t time(time_t *ret_now)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (ret_now)
        *ret_now = now.tv_sec;
    return now.tv_sec;
}
