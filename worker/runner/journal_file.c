/* SPDX-License-Identifier: MIT */
#include "worker/runner/journal_file.h"

#include "common/base/fs.h"
#include "worker/runner/crc.h"

const char *const journal_names[JOURNAL_FILES] = {"runner.journal.0", "runner.journal.1"};

/* Of this host's byte order: no other host reads it. */
struct head {
    uint32_t crc; /* of what follows, the text too */
    uint32_t size;
    uint64_t generation;
    uint64_t number;
    uint32_t kind;
    uint32_t zero;
};

#define CRC_FROM sizeof(uint32_t)

void journal_frame_put(struct buf *bytes, const struct journal_frame *frame)
{
    struct head head = {.size = (uint32_t)frame->text.len,
                        .generation = frame->generation,
                        .number = frame->number,
                        .kind = frame->kind};
    size_t at = bytes->len;
    if (!buf_add(bytes, &head, sizeof(head)) || !buf_add_sv(bytes, frame->text))
        return;
    head.crc = crc_of(bytes->ptr + at + CRC_FROM, sizeof(head) - CRC_FROM + frame->text.len);
    memcpy(bytes->ptr + at, &head, sizeof(head));
}

bool journal_frame_take(struct sv bytes, size_t *io_at, const struct journal_frame *before,
                        struct journal_frame *ret_frame)
{
    struct head head;
    size_t left = bytes.len - *io_at;
    if (left < sizeof(head))
        return false;
    memcpy(&head, bytes.ptr + *io_at, sizeof(head));
    if (head.kind < JOURNAL_JOB || head.kind > JOURNAL_SEAL || head.size > left - sizeof(head) ||
        head.number != (before ? before->number + 1 : 0) ||
        (before && head.generation != before->generation) ||
        head.crc != crc_of(bytes.ptr + *io_at + CRC_FROM, sizeof(head) - CRC_FROM + head.size))
        return false;
    *ret_frame = (struct journal_frame){.kind = (enum journal_kind)head.kind,
                                        .generation = head.generation,
                                        .number = head.number,
                                        .text = {bytes.ptr + *io_at + sizeof(head), head.size}};
    *io_at += sizeof(head) + head.size;
    return true;
}

/* The generation of the bytes, and where its last whole frame ends; false: it has no seal. */
static bool measure(struct sv bytes, uint64_t *ret_generation, size_t *ret_end)
{
    struct journal_frame frame;
    struct journal_frame before;
    bool sealed = false;
    size_t at = 0;
    while (journal_frame_take(bytes, &at, at > 0 ? &before : NULL, &frame)) {
        sealed = sealed || frame.kind == JOURNAL_SEAL;
        *ret_generation = frame.generation;
        before = frame;
    }
    *ret_end = at;
    return sealed;
}

enum err_code journal_files_read(int work_dir_fd, struct buf *ret_bytes, uint64_t *ret_generation,
                                 size_t *ret_file, struct err *err)
{
    *ret_generation = 0;
    *ret_file = JOURNAL_FILES - 1;
    for (size_t i = 0; i < JOURNAL_FILES; i++) {
        BUF_AUTO struct buf bytes = BUF_INIT(JOURNAL_MAX);
        uint64_t generation = 0;
        size_t end = 0;
        struct err why = {0};
        enum err_code rc = fs_read(work_dir_fd, journal_names[i], &bytes, &why);
        if (rc && rc != ERR_NOT_FOUND) {
            *err = why;
            return rc;
        }
        if (!measure(buf_sv(&bytes), &generation, &end) || generation <= *ret_generation)
            continue;
        *ret_generation = generation;
        *ret_file = i;
        buf_clear(ret_bytes);
        if (!buf_add(ret_bytes, bytes.ptr, end))
            return err_set(err, ERR_NOMEM, "no memory for the journal");
    }
    return ERR_OK;
}
