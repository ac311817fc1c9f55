/* SPDX-License-Identifier: MIT */
#include "worker/runner/writer.h"

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/fs.h"
#include "common/base/wake.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define CHUNK_BYTES ((size_t)64 * 1024)
#define EVENTS_AT_ONCE 64
#define FOREVER INT64_MAX

struct pipe {
    int fd; /* -1: not taken, or at its end */
    struct flow *flow;
};

struct flow {
    struct flow *next;  /* in the inbox, or of those done */
    struct flow *ended; /* the next one that is to be finished */
    void *owner;
    char *root;
    char *path;
    uint64_t cap;
    /* asked for; guarded by the writer's lock */
    bool in_inbox;
    bool open_asked;
    bool end_asked;
    int taken[2];
    int64_t until_ms; /* of end_asked */
    /* of the writer's thread */
    struct pipe pipes[2];
    struct output outputs[2];
    int dir;
    bool opened;
    bool listed; /* among those that are to be finished */
};

struct writer {
    int wake; /* the owner's */
    int news; /* ours */
    int epoll;
    pthread_t thread;
    bool has_thread;
    struct flow *ended;   /* of the thread: wait for the end of their pipes, or are finished */
    pthread_mutex_t lock; /* of what follows */
    bool stop;
    struct flow *inbox;
    struct flow *done;
};

static const char *const stream_names[] = {"stdout", "stderr"};

struct flow *flow_new(void *owner, const char *output_root, const char *output_dir, uint64_t cap)
{
    struct flow *flow = calloc(1, sizeof(*flow));
    if (!flow)
        return NULL;
    *flow = (struct flow){.owner = owner,
                          .cap = cap,
                          .root = strdup(output_root),
                          .path = strdup(output_dir),
                          .taken = {-1, -1},
                          .pipes = {{-1, flow}, {-1, flow}},
                          .outputs = {OUTPUT_NONE, OUTPUT_NONE},
                          .dir = -1};
    if (flow->root && flow->path)
        return flow;
    flow_free(flow);
    return NULL;
}

void flow_free(struct flow *flow)
{
    if (!flow)
        return;
    free(flow->root);
    free(flow->path);
    free(flow);
}

void *flow_owner(const struct flow *flow)
{
    return flow->owner;
}

struct runner_stream flow_result(const struct flow *flow, size_t which)
{
    return output_result(&flow->outputs[which]);
}

/* ---- the thread ---------------------------------------------------------------------------- */

/* A failure is told in the record, as one of the disk. */
static void open_files(struct flow *flow)
{
    FD_AUTO int root = -1;
    struct err err = {0};
    if (flow->opened)
        return;
    flow->opened = true;
    enum err_code rc = fs_open_dir(flow->root, false, &root, &err);
    if (rc == ERR_OK)
        rc = fs_make_dirs(root, flow->path, 0755, &flow->dir, &err);
    for (size_t i = 0; i < ARRAY_LEN(flow->outputs); i++) {
        if (rc == ERR_OK)
            rc = output_open(&flow->outputs[i], flow->dir, stream_names[i], flow->cap, &err);
        if (rc)
            flow->outputs[i].error = err.sys_errno ? err.sys_errno : EIO;
    }
}

static void close_files(struct flow *flow)
{
    output_close(&flow->outputs[0]);
    output_close(&flow->outputs[1]);
    fd_close(&flow->dir);
}

/* Explicitly: a child between clone and exec has a copy of it. */
static void drop_pipe(const struct writer *writer, struct pipe *pipe)
{
    if (pipe->fd >= 0)
        (void)epoll_ctl(writer->epoll, EPOLL_CTL_DEL, pipe->fd, NULL);
    fd_close(&pipe->fd);
}

/* How many bytes were there; 0 also when the pipe is at its end, which closes it. */
static size_t read_chunk(const struct writer *writer, struct pipe *pipe)
{
    static char chunk[CHUNK_BYTES]; /* there is one writer */
    struct flow *flow = pipe->flow;
    FAULT("runner.output.read");
    ssize_t got = read(pipe->fd, chunk, sizeof(chunk));
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (got <= 0) {
        drop_pipe(writer, pipe);
        return 0;
    }
    FAULT("runner.output.hang");
    open_files(flow);
    output_write(&flow->outputs[pipe - flow->pipes], chunk, (size_t)got);
    return (size_t)got;
}

static void list_ended(struct writer *writer, struct flow *flow)
{
    flow->listed = true;
    flow->ended = writer->ended;
    writer->ended = flow;
}

/* What was asked for one flow, copied out of the lock's reach. */
static void serve(struct writer *writer, struct flow *flow, const struct flow *asked)
{
    if (asked->open_asked)
        open_files(flow);
    for (size_t i = 0; i < ARRAY_LEN(flow->pipes); i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &flow->pipes[i]};
        if (asked->taken[i] < 0)
            continue;
        flow->pipes[i].fd = asked->taken[i];
        if (epoll_ctl(writer->epoll, EPOLL_CTL_ADD, asked->taken[i], &event) != 0)
            fd_close(&flow->pipes[i].fd);
    }
    if (asked->end_asked && !flow->listed)
        list_ended(writer, flow);
}

/* false: the writer is to end. */
static bool take_inbox(struct writer *writer)
{
    wake_drain(writer->news);
    for (;;) {
        (void)pthread_mutex_lock(&writer->lock);
        struct flow *flow = writer->inbox;
        bool stop = writer->stop;
        struct flow asked = {0};
        if (flow) {
            writer->inbox = flow->next;
            asked = *flow;
            flow->in_inbox = flow->open_asked = false;
            flow->taken[0] = flow->taken[1] = -1;
        }
        (void)pthread_mutex_unlock(&writer->lock);
        if (!flow)
            return !stop;
        serve(writer, flow, &asked);
    }
}

static void hand_back(struct writer *writer, struct flow *flow)
{
    close_files(flow);
    (void)pthread_mutex_lock(&writer->lock);
    flow->next = writer->done;
    writer->done = flow;
    (void)pthread_mutex_unlock(&writer->lock);
    wake_raise(writer->wake);
}

/* What is in the pipe when its time is over: this thread may have been the one who was late. */
static void drain(const struct writer *writer, struct pipe *pipe)
{
    int left = 0;
    size_t got = 1;
    if (pipe->fd < 0 || ioctl(pipe->fd, FIONREAD, &left) != 0)
        return;
    /* A read may give less than there is: one packet, if the job asked for those (O_DIRECT). */
    for (; left > 0 && got > 0; left -= (int)got)
        got = read_chunk(writer, pipe);
}

/* One step of each flow that has ended; when the next one is due. */
static int64_t advance(struct writer *writer)
{
    int64_t now = clock_mono_ms();
    int64_t due = FOREVER;
    struct flow **at = &writer->ended;
    while (*at) {
        struct flow *flow = *at;
        bool open = flow->pipes[0].fd >= 0 || flow->pipes[1].fd >= 0;
        if (open && now < flow->until_ms) {
            due = flow->until_ms < due ? flow->until_ms : due;
            at = &flow->ended;
            continue;
        }
        for (size_t i = 0; i < ARRAY_LEN(flow->pipes); i++) {
            drain(writer, &flow->pipes[i]);
            drop_pipe(writer, &flow->pipes[i]);
        }
        if (output_finish(&flow->outputs[0]) && output_finish(&flow->outputs[1])) {
            *at = flow->ended;
            hand_back(writer, flow);
            continue;
        }
        due = now;
        at = &flow->ended;
    }
    return due;
}

static void *writer_main(void *arg)
{
    struct writer *writer = arg; /* close joins us before it frees it */
    struct epoll_event events[EVENTS_AT_ONCE];
    while (take_inbox(writer)) {
        int64_t due = advance(writer);
        int64_t left = due == FOREVER ? -1 : due - clock_mono_ms();
        int wait_ms = due == FOREVER ? -1 : left > 0 ? (int)left : 0;
        int count = epoll_wait(writer->epoll, events, EVENTS_AT_ONCE, wait_ms);
        for (int i = 0; i < count; i++) {
            struct pipe *pipe = events[i].data.ptr;
            if (pipe && pipe->fd >= 0)
                (void)read_chunk(writer, pipe);
        }
    }
    return NULL;
}

/* ---- calls --------------------------------------------------------------------------------- */

enum err_code writer_open(int wake_fd, struct writer **ret_writer, struct err *err)
{
    sigset_t all;
    sigset_t before;
    struct writer *writer = calloc(1, sizeof(*writer));
    if (!writer)
        return err_set(err, ERR_NOMEM, "no memory for a writer");
    (void)pthread_mutex_init(&writer->lock, NULL);
    writer->wake = wake_fd;
    writer->news = wake_open();
    writer->epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    int error = epoll_ctl(writer->epoll, EPOLL_CTL_ADD, writer->news, &event) != 0 ? errno : 0;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    if (!error)
        error = pthread_create(&writer->thread, NULL, writer_main, writer);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    writer->has_thread = error == 0;
    if (error) {
        writer_close(writer);
        return err_set_errno(err, ERR_IO, error, "cannot make ready to write");
    }
    *ret_writer = writer;
    return ERR_OK;
}

void writer_close(struct writer *writer)
{
    if (!writer)
        return;
    (void)pthread_mutex_lock(&writer->lock);
    writer->stop = true;
    (void)pthread_mutex_unlock(&writer->lock);
    if (writer->has_thread) {
        wake_raise(writer->news);
        (void)pthread_join(writer->thread, NULL);
    }
    fd_close(&writer->news);
    fd_close(&writer->epoll);
    (void)pthread_mutex_destroy(&writer->lock);
    free(writer);
}

/* With the lock held. */
static void post(struct writer *writer, struct flow *flow)
{
    if (flow->in_inbox)
        return;
    flow->in_inbox = true;
    flow->next = writer->inbox;
    if (!writer->inbox)
        wake_raise(writer->news);
    writer->inbox = flow;
}

void writer_open_files(struct writer *writer, struct flow *flow)
{
    (void)pthread_mutex_lock(&writer->lock);
    flow->open_asked = true;
    post(writer, flow);
    (void)pthread_mutex_unlock(&writer->lock);
}

void writer_take(struct writer *writer, struct flow *flow, size_t which, int *take_fd)
{
    (void)pthread_mutex_lock(&writer->lock);
    flow->taken[which] = *take_fd;
    *take_fd = -1;
    post(writer, flow);
    (void)pthread_mutex_unlock(&writer->lock);
}

void writer_end(struct writer *writer, struct flow *flow, int wait_ms)
{
    (void)pthread_mutex_lock(&writer->lock);
    flow->end_asked = true;
    flow->until_ms = clock_mono_ms() + wait_ms;
    post(writer, flow);
    (void)pthread_mutex_unlock(&writer->lock);
}

struct flow *writer_done(struct writer *writer)
{
    (void)pthread_mutex_lock(&writer->lock);
    struct flow *flow = writer->done;
    if (flow)
        writer->done = flow->next;
    (void)pthread_mutex_unlock(&writer->lock);
    return flow;
}
