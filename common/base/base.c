/* SPDX-License-Identifier: MIT */
#include "common/base/base.h"

#include <unistd.h>

void fd_close(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

void text_free(char **text)
{
    free(*text);
    *text = NULL;
}
