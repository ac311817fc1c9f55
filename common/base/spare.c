/* SPDX-License-Identifier: MIT */
#include "common/base/spare.h"

#include <malloc.h>
#include <pthread.h>
#include <stdalign.h>
#include <stddef.h>
#include <unistd.h>

/* The room is a row of these, each with its bytes behind it; two that are free are never long side
 * by side. */
struct block {
    alignas(max_align_t) size_t size; /* with this head */
    bool taken;
};

static union {
    struct block first;
    unsigned char bytes[SPARE_BYTES];
} room;
static size_t used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct block *behind(struct block *block)
{
    unsigned char *next = (unsigned char *)block + block->size;
    return next < room.bytes + SPARE_BYTES ? (struct block *)(void *)next : NULL;
}

/* Joins what is free behind it. */
static void widen(struct block *block)
{
    struct block *next = behind(block);
    while (next && !next->taken) {
        block->size += next->size;
        next = behind(block);
    }
}

/* The first that has room for so much; the lock is held. */
static struct block *find(size_t size)
{
    struct block *block = &room.first;
    if (block->size == 0)
        block->size = SPARE_BYTES;
    for (; block; block = behind(block)) {
        if (block->taken)
            continue;
        widen(block);
        if (block->size >= size)
            return block;
    }
    return NULL;
}

static void *take(size_t size)
{
    const size_t step = sizeof(struct block);
    if (size > SPARE_BYTES - step)
        return NULL;
    size = (size + step - 1) / step * step + step;
    (void)pthread_mutex_lock(&lock);
    struct block *block = find(size);
    if (block) {
        if (block->size > size) {
            struct block *rest = (struct block *)(void *)((unsigned char *)block + size);
            *rest = (struct block){.size = block->size - size};
            block->size = size;
        }
        block->taken = true;
        used += block->size;
    }
    (void)pthread_mutex_unlock(&lock);
    return block ? block + 1 : NULL;
}

void *spare_try(size_t size)
{
    void *block = malloc(size);
    return block ? block : take(size);
}

void *spare_malloc(size_t size)
{
    static const char words[] = "out of memory: no room is left for a document\n";
    void *block = spare_try(size);
    if (!block) {
        ssize_t told = write(STDERR_FILENO, words, sizeof(words) - 1);
        (void)told;
        abort();
    }
    return block;
}

static bool is_ours(const void *block)
{
    const unsigned char *bytes = block;
    return bytes >= room.bytes && bytes < room.bytes + SPARE_BYTES;
}

void spare_free(void *block)
{
    if (!is_ours(block)) {
        free(block);
        return;
    }
    struct block *head = (struct block *)block - 1;
    (void)pthread_mutex_lock(&lock);
    head->taken = false;
    used -= head->size;
    (void)pthread_mutex_unlock(&lock);
}

void *spare_grow(void *take_block, size_t size)
{
    void *block = is_ours(take_block) ? NULL : realloc(take_block, size);
    if (block || size == 0)
        return block;
    size_t had = !take_block ? 0
                 : is_ours(take_block)
                     ? ((struct block *)take_block)[-1].size - sizeof(struct block)
                     : malloc_usable_size(take_block);
    block = spare_try(size);
    if (block && take_block) {
        memcpy(block, take_block, had < size ? had : size);
        spare_free(take_block);
    }
    return block;
}

char *spare_text(char *take_text)
{
    if (!is_ours(take_text))
        return take_text;
    char *text = strdup(take_text);
    spare_free(take_text);
    return text;
}

size_t spare_used(void)
{
    (void)pthread_mutex_lock(&lock);
    size_t now = used;
    (void)pthread_mutex_unlock(&lock);
    return now;
}
