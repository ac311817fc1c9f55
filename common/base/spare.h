/* SPDX-License-Identifier: MIT */
#ifndef COMMON_BASE_SPARE_H
#define COMMON_BASE_SPARE_H

/* spare: memory that does not fail while a document is made or read. A document of which a part was
 * lost for want of memory looks like a whole one, and a message that could not be read like none of
 * ours; so when malloc fails, some room that was set aside is used, in which a refusal is written
 * as well. If that is full too the process ends: whoever watches over it starts it again.
 * A program gives these to jansson, and spare_try() and its like to OpenSSL, before it starts a
 * thread.
 * Threads: any. Memory: what spare_malloc() gives goes back by spare_free(); that takes what came
 * from malloc, too. */

#include "common/base/base.h"

#define SPARE_BYTES ((size_t)1024 * 1024)

/* Never NULL. */
void *spare_malloc(size_t size);
/* For a library that bears it: NULL when the room is full, too. */
void *spare_try(size_t size);
void *spare_grow(void *take_block, size_t size); /* as realloc */
void spare_free(void *block);                    /* NULL is allowed */
/* A text that jansson made, as one for free(); NULL if there is no memory for that. */
char *spare_text(char *take_text);
/* How much of the room is taken. */
size_t spare_used(void);

#endif
