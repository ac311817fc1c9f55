/* SPDX-License-Identifier: MIT */
#include "webapp/next_step.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define COMMAND_SIZE 512

static const char *const whom[ROLE_COUNT] = {
    [ROLE_VIEWER] = "an operator", /* who has no role at all */
    [ROLE_USER] = "an operator",
    [ROLE_OPERATOR] = "an operator",
    [ROLE_ADMIN] = "an administrator",
};

void next_step_add(struct buf *text, const struct identity *asker, enum role least,
                   const char *what, const char *command, ...)
{
    char line[COMMAND_SIZE];
    va_list args;
    if (!auth_has_role(asker, least)) {
        buf_addf(text, ". Ask %s of this site to %s", whom[least], what);
        return;
    }
    va_start(args, command);
    (void)vsnprintf(line, sizeof(line), command, args);
    va_end(args);
    buf_addf(text, ". %c%s: '%s'", toupper((unsigned char)what[0]), what + 1, line);
}

enum role next_step_role(const struct identity *asker, const char *owner)
{
    return strcmp(asker->user, owner) == 0 ? ROLE_USER : ROLE_OPERATOR;
}
