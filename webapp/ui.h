/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_UI_H
#define WEBAPP_UI_H

/* ui: the files of the administrators' page, read once at start; NAME.gz beside NAME is the same
 * file for clients that take gzip. Threads: immutable. Memory: ui_free(); answers borrow the bytes,
 * so the server is freed first. */

#include "common/base/err.h"

struct ui;

/* folder "": ../share/sluice/ui, seen from the folder of the program. Without such a folder the
 * service runs as well and has no page. ERR_IO, ERR_TOO_LARGE, ERR_NOMEM. */
MUST_USE enum err_code ui_open(const char *folder, struct ui **ret_ui, struct err *err);
void ui_free(struct ui *ui); /* NULL is allowed */

#endif
