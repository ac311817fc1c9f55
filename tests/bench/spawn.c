/* SPDX-License-Identifier: MIT */
/* spawn THREADS COUNT COMMAND...: posix_spawn and wait, the limit of whatever starts processes. */

#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static atomic_long left;
static char **command;

static void *spawn_main(void *unused)
{
    (void)unused;
    while (atomic_fetch_sub(&left, 1) > 0) {
        pid_t pid = 0;
        int status = 0;
        if (posix_spawn(&pid, command[0], NULL, NULL, command, environ) != 0 ||
            waitpid(pid, &status, 0) != pid || status != 0) {
            perror("spawn");
            exit(1);
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    enum { THREADS_MAX = 64 };
    pthread_t threads[THREADS_MAX];
    struct timespec from, to;
    long count = argc > 3 ? strtol(argv[1], NULL, 10) : 0;
    long jobs = argc > 3 ? strtol(argv[2], NULL, 10) : 0;

    if (count < 1 || count > THREADS_MAX || jobs < 1) {
        fprintf(stderr, "usage: spawn THREADS COUNT COMMAND...\n");
        return 2;
    }
    command = argv + 3;
    atomic_store(&left, jobs);
    (void)clock_gettime(CLOCK_MONOTONIC, &from);
    for (long i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, spawn_main, NULL) != 0)
            return 1;
    for (long i = 0; i < count; i++)
        (void)pthread_join(threads[i], NULL);
    (void)clock_gettime(CLOCK_MONOTONIC, &to);
    double seconds = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
    printf("{\"per_s\":%.1f}\n", (double)jobs / seconds);
    return 0;
}
