/* SPDX-License-Identifier: MIT */
/* scarce: preloaded into a program, it makes memory, threads and processes run out when a test says
 * so: the file $SCARCE_FOLDER/NAME of the program's short name holds a struct orders, which the
 * test may change at any time. Without that file nothing happens.
 * Threads: any. */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* tests/support/scarcity.py writes and reads it. */
struct orders {
    _Atomic int64_t memory_in;    /* the so many-th allocation from now fails; 0: none */
    _Atomic int64_t memory_every; /* each so many-th fails; 0: none */
    _Atomic int64_t no_threads;   /* not 0: none is made */
    _Atomic int64_t no_processes; /* not 0: none is made */
    _Atomic int64_t asked;        /* allocations so far */
    _Atomic int64_t memory_failed;
    _Atomic int64_t threads_failed;
    _Atomic int64_t processes_failed;
};

static struct orders *orders;

/* Libraries that ask for memory in vain and go on as if they had some, or forget what they had:
 * they always get some. */
static const char *const frail_names[] = {"libmariadb", "libmysqlclient", "librabbitmq"};
static struct {
    uintptr_t begin, end;
} frail[4];
static size_t frail_count;

static int find_frail(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    bool found = false;
    for (size_t i = 0; i < sizeof(frail_names) / sizeof(*frail_names); i++)
        found = found || strstr(info->dlpi_name, frail_names[i]);
    for (int i = 0; found && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X) || frail_count == 4)
            continue;
        frail[frail_count].begin = info->dlpi_addr + part->p_vaddr;
        frail[frail_count].end = frail[frail_count].begin + part->p_memsz;
        frail_count++;
    }
    return 0;
}

static bool is_frail(const void *caller)
{
    uintptr_t from = (uintptr_t)caller;
    for (size_t i = 0; i < frail_count; i++) {
        if (from >= frail[i].begin && from < frail[i].end)
            return true;
    }
    return false;
}

/* The next one that has this name; a sanitizer's, if there is one. */
#define NEXT(name)                                                                                 \
    static void *_Atomic found;                                                                    \
    void *address = atomic_load(&found);                                                           \
    if (!address) {                                                                                \
        address = dlsym(RTLD_NEXT, #name);                                                         \
        atomic_store(&found, address);                                                             \
    }                                                                                              \
    __typeof__(name) *next = NULL;                                                                 \
    memcpy(&next, &address, sizeof(next));

__attribute__((constructor)) static void map_orders(void)
{
    char path[4096];
    const char *folder = getenv("SCARCE_FOLDER"); /* NOLINT(concurrency-mt-unsafe): no thread yet */
    (void)snprintf(path, sizeof(path), "%s/%s", folder ? folder : "",
                   program_invocation_short_name);
    int fd = folder ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *map = mmap(NULL, sizeof(*orders), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    (void)dl_iterate_phdr(find_frail, NULL);
    if (map != MAP_FAILED)
        orders = map;
}

static bool no_memory(const void *caller)
{
    struct orders *now = orders;
    if (!now || is_frail(caller))
        return false;
    int64_t every = atomic_load(&now->memory_every);
    int64_t count = atomic_fetch_add(&now->asked, 1) + 1;
    bool fails = every > 0 && count % every == 0;
    if (atomic_load(&now->memory_in) > 0)
        fails = atomic_fetch_sub(&now->memory_in, 1) == 1 || fails;
    if (fails) {
        atomic_fetch_add(&now->memory_failed, 1);
        errno = ENOMEM;
    }
    return fails;
}

static bool none(_Atomic int64_t *order, _Atomic int64_t *failed)
{
    if (atomic_load(order) == 0)
        return false;
    atomic_fetch_add(failed, 1);
    errno = EAGAIN;
    return true;
}

static bool no_process(void)
{
    return orders && none(&orders->no_processes, &orders->processes_failed);
}

void *malloc(size_t size)
{
    NEXT(malloc)
    return no_memory(__builtin_return_address(0)) ? NULL : next(size);
}

void *calloc(size_t count, size_t size)
{
    NEXT(calloc)
    return no_memory(__builtin_return_address(0)) ? NULL : next(count, size);
}

void *realloc(void *block, size_t size)
{
    NEXT(realloc)
    return no_memory(__builtin_return_address(0)) ? NULL : next(block, size);
}

int pthread_create(pthread_t *ret_thread, const pthread_attr_t *attr, void *(*run)(void *),
                   void *arg)
{
    NEXT(pthread_create)
    if (orders && none(&orders->no_threads, &orders->threads_failed))
        return EAGAIN;
    return next(ret_thread, attr, run, arg);
}

pid_t fork(void)
{
    NEXT(fork)
    return no_process() ? -1 : next();
}

int posix_spawn(pid_t *ret_pid, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attr, char *const argv[], char *const env[])
{
    NEXT(posix_spawn)
    return no_process() ? EAGAIN : next(ret_pid, path, actions, attr, argv, env);
}

int clone(int (*run)(void *), void *stack, int flags, void *arg, ...)
{
    NEXT(clone)
    va_list more;
    va_start(more, arg);
    /* NOLINTBEGIN(clang-analyzer-valist.Uninitialized): it is begun above */
    pid_t *parent = va_arg(more, pid_t *);
    void *tls = va_arg(more, void *);
    pid_t *child = va_arg(more, pid_t *);
    /* NOLINTEND(clang-analyzer-valist.Uninitialized) */
    va_end(more);
    return no_process() ? -1 : next(run, stack, flags, arg, parent, tls, child);
}
