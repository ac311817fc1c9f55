/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_PAGE_H
#define WEBAPP_PAGE_H

/* page: pages of what is listed in the order of its names, by ?limit and ?cursor.
 * Threads: any handler thread. Memory: the caller's. */

#include "common/store/store.h"
#include "webapp/web.h"

#define PAGE_NAME_SIZE 192
#define PAGE_CURSOR_SIZE (CURSOR_TEXT_SIZE + 2 * PAGE_NAME_SIZE)

/* what: the list, which a cursor is bound to; ret_after holds what ret_page points to. Without
 * ?limit a page is as large as it may be: most, and limits.page_max. */
MUST_USE enum err_code page_read(const struct request *req, const char *what, uint64_t most,
                                 char ret_after[PAGE_NAME_SIZE], struct name_page *ret_page,
                                 struct err *err);
/* The cursor of the page behind the one that ends with this name. */
void page_cursor(const struct request *req, const char *what, const char *last,
                 char ret_text[PAGE_CURSOR_SIZE]);

#endif
