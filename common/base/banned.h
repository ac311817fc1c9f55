/* SPDX-License-Identifier: MIT */
#ifndef COMMON_BASE_BANNED_H
#define COMMON_BASE_BANNED_H

/* banned: calls that do not compile, because each has cost somebody a night: unbounded copies,
 * hidden static state, silent conversion errors, a shell. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* With _FORTIFY_SOURCE these are macros to clang, which warns when one is poisoned. */
#undef sprintf
#undef vsprintf
#pragma GCC poison strcpy strcat stpcpy sprintf vsprintf gets strtok atoi atol atof
#pragma GCC poison localtime gmtime ctime asctime system popen tmpnam mktemp

#endif
