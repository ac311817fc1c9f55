/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"

#include "common/base/fault.h"

#ifdef SLUICE_FAULTS

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRIES 50

static int said = -1;

static void *pass(void *unused)
{
    (void)unused;
    (void)fault_hit("here");
    (void)!write(said, "x", 1);
    return NULL;
}

/* A process whose main thread rests, as in our programs, while another one comes to the point. */
static pid_t start(int fd)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    pthread_t thread;
    said = fd;
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC); /* for what the point logs */
    (void)dup2(nowhere, STDOUT_FILENO);
    (void)dup2(nowhere, STDERR_FILENO);
    fault_arm("here=stop");
    if (pthread_create(&thread, NULL, pass, NULL) != 0)
        _exit(1);
    for (;;)
        (void)pause();
}

static void whoever_comes_to_a_stop_does_not_go_past_it(void **unused)
{
    (void)unused;
    for (int i = 0; i < TRIES; i++) {
        int ends[2];
        int status = 0;
        char byte = 0;
        assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
        pid_t child = start(ends[1]);
        assert_true(child > 0);
        assert_int_equal(waitpid(child, &status, WUNTRACED), child);
        assert_true(WIFSTOPPED(status));
        assert_int_equal(read(ends[0], &byte, 1), -1);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        (void)close(ends[0]);
        (void)close(ends[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(whoever_comes_to_a_stop_does_not_go_past_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 0;
}

#endif
