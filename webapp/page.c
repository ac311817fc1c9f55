/* SPDX-License-Identifier: MIT */
#include "webapp/page.h"

#include "webapp/request.h"

#define BOUND_LIMIT ((size_t)1024)
#define MARK '.'

/* A cursor is the name in hex behind a signature of list, tenant and name: there is no id that
 * could say where a page ended. */
static void bind_to(const struct request *req, const char *what, struct sv name,
                    struct buf *ret_bound)
{
    buf_addf(ret_bound, "%s %s ", what, req->who.tenant);
    buf_add_sv(ret_bound, name);
}

static bool decode(struct sv hex, char ret_name[PAGE_NAME_SIZE])
{
    size_t length = hex.len / 2;
    if (hex.len % 2 != 0 || length >= PAGE_NAME_SIZE)
        return false;
    for (size_t i = 0; i < length; i++) {
        int high = sv_hex(hex.ptr[2 * i]);
        int low = sv_hex(hex.ptr[2 * i + 1]);
        if (high < 0 || low < 0 || (high == 0 && low == 0))
            return false;
        ret_name[i] = (char)(high << 4 | low);
    }
    ret_name[length] = '\0';
    return true;
}

static enum err_code read_cursor(const struct request *req, const char *what, struct sv cursor,
                                 char ret_after[PAGE_NAME_SIZE], struct err *err)
{
    BUF_AUTO struct buf bound = BUF_INIT(BOUND_LIMIT);
    struct uuid unused;
    struct sv signature = cursor;
    const char *mark = memchr(cursor.ptr, MARK, cursor.len);
    if (mark) {
        signature.len = (size_t)(mark - cursor.ptr);
        if (!decode((struct sv){mark + 1, cursor.len - signature.len - 1}, ret_after))
            signature.len = 0; /* refused as any that is not ours */
    }
    bind_to(req, what, sv_of(ret_after), &bound);
    return cursor_read(&req->web->cursor_key, buf_sv(&bound), signature, &unused, err);
}

enum err_code page_read(const struct request *req, const char *what, uint64_t most,
                        char ret_after[PAGE_NAME_SIZE], struct name_page *ret_page, struct err *err)
{
    struct sv cursor;
    uint64_t limit = req->web->cfg->limits_page_max;
    limit = limit < most ? limit : most;
    enum err_code rc = request_number(req, "limit", 1, limit, &limit, err);
    ret_after[0] = '\0';
    *ret_page = (struct name_page){.after = ret_after, .limit = (uint32_t)limit};
    if (rc || !uri_query(&req->uri, "cursor", &cursor))
        return rc;
    return read_cursor(req, what, cursor, ret_after, err);
}

void page_cursor(const struct request *req, const char *what, const char *last,
                 char ret_text[PAGE_CURSOR_SIZE])
{
    BUF_AUTO struct buf bound = BUF_INIT(BOUND_LIMIT);
    const struct uuid none = {{0}};
    bind_to(req, what, sv_of(last), &bound);
    cursor_write(&req->web->cursor_key, buf_sv(&bound), &none, ret_text);
    size_t at = strlen(ret_text);
    ret_text[at++] = MARK;
    for (; *last && at + 3 <= PAGE_CURSOR_SIZE; last++, at += 2)
        (void)snprintf(ret_text + at, 3, "%02x", (unsigned char)*last);
}
