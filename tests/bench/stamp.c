/* SPDX-License-Identifier: MIT */
/* stamp FILE TEXT: the command of jobs whose start is measured: appends "TEXT ns pid" to the file,
 * ns of CLOCK_MONOTONIC when main() was entered. One short write: lines do not mix. */

#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct timespec now;
    char line[128];

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    if (argc != 3)
        return 2;
    int size = snprintf(line, sizeof(line), "%s %lld %ld\n", argv[2],
                        (long long)now.tv_sec * 1000000000 + now.tv_nsec, (long)getpid());
    int fd = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0 || size < 0 || (size_t)size >= sizeof(line))
        return 1;
    return write(fd, line, (size_t)size) == size ? 0 : 1;
}
