/* SPDX-License-Identifier: MIT */
/* clock_step: preloaded into a program, it moves the program's wall clock by as many seconds as
 * stand in the file CLOCK_STEP_FILE (an int64_t), from one moment to the next; and the time since
 * boot by those in the file CLOCK_STEP_BOOT_FILE, as if the host had been suspended. The monotonic
 * clock and the machine's own clocks stay as they are.
 * Threads: any. */

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *step_s;
static const volatile int64_t *boot_step_s;

static const volatile int64_t *map_step(const char *name)
{
    const char *path = getenv(name); /* NOLINT(concurrency-mt-unsafe): no thread yet */
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return NULL;
    void *map = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
    (void)close(fd);
    return map != MAP_FAILED ? map : NULL;
}

__attribute__((constructor)) static void map_steps(void)
{
    step_s = map_step("CLOCK_STEP_FILE");
    boot_step_s = map_step("CLOCK_STEP_BOOT_FILE");
}

int clock_gettime(clockid_t which, struct timespec *ret_now)
{
    int rc = (int)syscall(SYS_clock_gettime, which, ret_now);
    if (rc == 0 && step_s && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE))
        ret_now->tv_sec += *step_s;
    if (rc == 0 && boot_step_s && which == CLOCK_BOOTTIME)
        ret_now->tv_sec += *boot_step_s;
    return rc;
}

/* The kernel does not know of the step: what is due then is due so much sooner for it. */
int timerfd_settime(int fd, int flags, const struct itimerspec *when, struct itimerspec *ret_old)
{
    struct itimerspec moved = *when;
    if (boot_step_s && flags & TFD_TIMER_ABSTIME && moved.it_value.tv_sec > *boot_step_s)
        moved.it_value.tv_sec -= *boot_step_s;
    return (int)syscall(SYS_timerfd_settime, fd, flags, &moved, ret_old);
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
