/* SPDX-License-Identifier: MIT */
#include "worker/runner/output.h"

#include "common/base/fault.h"
#include "common/base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <unistd.h>

#define STEP_BYTES ((uint64_t)4 * 1024 * 1024)
#define MARKER_SIZE 64

/* A part of the final file: bytes of a file, or of a text. */
struct part {
    int fd;
    const char *text;
    uint64_t from;
    uint64_t size;
};

enum err_code output_open(struct output *output, int dir_fd, const char *name, uint64_t cap,
                          struct err *err)
{
    *output = OUTPUT_NONE;
    output->dir = dir_fd;
    output->name = name;
    output->cap = cap;
    output->head = cap / 2;
    return fs_open_beneath(dir_fd, name, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW, 0644,
                           &output->file, err);
}

static bool write_at(int fd, const char *bytes, size_t size, uint64_t at)
{
    while (size > 0) {
        ssize_t done = FAULT_FAILS("runner.output.write") ? (errno = ENOSPC, -1)
                                                          : pwrite(fd, bytes, size, (off_t)at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        bytes += done;
        size -= (size_t)done;
        at += (uint64_t)done;
    }
    return true;
}

/* A file beside the output's, whose name starts with a dot and ends in suffix. */
static int open_beside(const struct output *output, const char *suffix, bool keep_name)
{
    char name[NAME_MAX + 1];
    int fd = -1;
    (void)snprintf(name, sizeof(name), ".%s.%s", output->name, suffix);
    enum err_code rc = fs_open_beneath(output->dir, name, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW,
                                       0644, &fd, NULL);
    if (rc)
        return -1;
    if (!keep_name)
        (void)unlinkat(output->dir, name, 0);
    return fd;
}

/* Writes what fits before the next border (the cap, the end of the ring); 0: the disk failed. */
static size_t write_piece(struct output *output, const char *bytes, size_t size)
{
    uint64_t tail = output->cap - output->head;
    bool over = output->end >= output->cap;
    uint64_t at = over ? (output->end - output->cap) % tail : output->end;
    uint64_t room = (over ? tail : output->cap) - at;
    if (size > room)
        size = (size_t)room;
    if (over && output->ring < 0)
        output->ring = open_beside(output, "tail", false);
    if (!write_at(over ? output->ring : output->file, bytes, size, at))
        return 0;
    return size;
}

void output_write(struct output *output, const char *bytes, size_t size_bytes)
{
    output->total += size_bytes;
    while (size_bytes > 0 && !output->error) {
        size_t done = write_piece(output, bytes, size_bytes);
        if (done == 0)
            output->error = errno ? errno : EIO;
        output->end += done;
        bytes += done;
        size_bytes -= done;
    }
}

static size_t marker(const struct output *output, uint64_t kept, char *ret_text)
{
    int size = snprintf(ret_text, MARKER_SIZE, "\n[sluice: %" PRIu64 " bytes left out]\n",
                        output->total - kept);
    return (size_t)size;
}

/* What the final file is made of, in order: head, marker, and the tail in one or two parts. */
static void plan(const struct output *output, char *text, struct part *parts)
{
    uint64_t tail = output->cap - output->head;
    uint64_t over = output->end - output->cap;
    uint64_t at = over % tail;
    parts[0] = (struct part){.fd = output->file, .size = output->head};
    parts[1] = (struct part){.fd = -1, .text = text, .size = marker(output, output->cap, text)};
    if (over < tail) {
        parts[2] = (struct part){output->file, NULL, output->head + over, tail - over};
        parts[3] = (struct part){output->ring, NULL, 0, over};
    } else {
        parts[2] = (struct part){output->ring, NULL, at, tail - at};
        parts[3] = (struct part){output->ring, NULL, 0, at};
    }
}

/* Copies some bytes of a part from `skip` on; the number of bytes, or 0 and errno. */
static size_t copy_piece(struct output *output, const struct part *part, uint64_t skip)
{
    char bytes[16384];
    uint64_t left = part->size - skip;
    size_t size = left < sizeof(bytes) ? (size_t)left : sizeof(bytes);
    if (part->text)
        memcpy(bytes, part->text + skip, size);
    ssize_t got =
        part->text ? (ssize_t)size : pread(part->fd, bytes, size, (off_t)(part->from + skip));
    if (got == 0)
        errno = EIO;
    if (got <= 0 || !write_at(output->fresh, bytes, (size_t)got, output->made))
        return 0;
    return (size_t)got;
}

enum copied { COPY_DONE, COPY_MORE, COPY_FAILED };

/* Copies the rest of a part that begins at `before` of the fresh file, up to target bytes there. */
static enum copied copy_part(struct output *output, const struct part *part, uint64_t before,
                             uint64_t target)
{
    while (output->made < before + part->size) {
        if (output->made >= target)
            return COPY_MORE;
        size_t done = copy_piece(output, part, output->made - before);
        output->made += done;
        if (done == 0)
            return COPY_FAILED;
    }
    return COPY_DONE;
}

/* Fills the fresh file; false: more is to be copied. */
static bool put_together(struct output *output)
{
    char text[MARKER_SIZE];
    struct part parts[4];
    uint64_t target = output->made + STEP_BYTES;
    uint64_t before = 0;
    enum copied copied = COPY_DONE;
    plan(output, text, parts);
    for (size_t i = 0; i < ARRAY_LEN(parts) && copied == COPY_DONE; before += parts[i++].size)
        copied = copy_part(output, &parts[i], before, target);
    if (copied == COPY_FAILED)
        output->error = errno ? errno : EIO;
    return copied != COPY_MORE;
}

/* The disk failed while the file was put together: what is left is the head and the marker. */
static void cut_to_head(struct output *output)
{
    char text[MARKER_SIZE];
    size_t size = marker(output, output->head, text);
    output->kept = output->head;
    if (ftruncate(output->file, (off_t)output->head) == 0)
        (void)write_at(output->file, text, size, output->head);
}

static void replace_file(struct output *output)
{
    char name[NAME_MAX + 1];
    (void)snprintf(name, sizeof(name), ".%s.new", output->name);
    if (!output->error && renameat(output->dir, name, output->dir, output->name) != 0)
        output->error = errno;
    output->kept = output->cap;
    if (!output->error)
        return;
    (void)unlinkat(output->dir, name, 0);
    cut_to_head(output);
}

bool output_finish(struct output *output)
{
    if (output->finished)
        return true;
    if (output->end <= output->cap) {
        output->kept = output->end;
        output->finished = true;
        return true;
    }
    if (output->fresh < 0) {
        output->ring_error = output->error; /* cut the tail; the final file may work all the same */
        output->error = 0;
        output->fresh = open_beside(output, "new", true);
    }
    if (output->fresh < 0)
        output->error = errno ? errno : EIO;
    else if (!put_together(output))
        return false;
    replace_file(output);
    if (!output->error)
        output->error = output->ring_error;
    output->finished = true;
    return true;
}

struct runner_stream output_result(const struct output *output)
{
    struct runner_stream result = {
        .total_bytes = output->total,
        .kept_bytes = output->kept,
        .truncated = output->kept < output->total,
    };
    const char *name = output->error ? strerrorname_np(output->error) : "";
    (void)snprintf(result.error, sizeof(result.error), "%s", name ? name : "EIO");
    return result;
}

void output_close(struct output *output)
{
    fd_close(&output->file);
    fd_close(&output->ring);
    fd_close(&output->fresh);
}
