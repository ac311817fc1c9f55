/* SPDX-License-Identifier: MIT */
#ifndef COMMON_BASE_ERR_H
#define COMMON_BASE_ERR_H

/* err: what went wrong, in a form that a person, a client and a consumer can each act on.
 * Threads: owner (a struct err belongs to its caller). Memory: none is allocated, but for err_list.
 */

#include "common/base/base.h"

enum err_code {
    ERR_OK = 0,
#define ERR(name, number, http, settlement, title, help) ERR_##name,
#include "common/base/err.def"
#undef ERR
    ERR_CODE_COUNT
};

/* What a consumer does with the message whose handling ended so. */
enum err_settlement {
    SETTLE_ACK,    /* handled, or not ours to handle: acknowledge */
    SETTLE_REJECT, /* can never be handled: dead letter */
    SETTLE_RETRY,  /* may work later: leave it unacknowledged, try again after a pause */
};

#define ERR_TEXT_MAX 400
#define ERR_POINTER_MAX 160

struct err_list;

struct err {
    enum err_code code;
    int sys_errno;                 /* 0, or the errno behind it */
    char text[ERR_TEXT_MAX];       /* value, limit and cure, one sentence, no secret */
    char pointer[ERR_POINTER_MAX]; /* JSON pointer of the member that is wrong, or "" */
    struct err_list *list; /* where all faults of members go; NULL: the first alone counts */
};

/* All faults of the members of one request, so that a client sees them at once. Memory: the caller
 * sets it to {0} and ends it by err_list_done(). */
#define ERR_LIST_MAX 20 /* further ones are left out */
struct err_list {
    struct err *items;
    size_t count;
};
void err_list_done(struct err_list *list);
/* Whoever reads members one after the other goes on behind a fault while this is true. */
bool err_wants_more(const struct err *err);

/* All return the code. The first error stays: a later err_set on a filled err only returns it. */
enum err_code err_set(struct err *err, enum err_code code, const char *format, ...)
    PRINTF_LIKE(3, 4);
/* As err_set, with errno_value kept and its name appended to the text. */
enum err_code err_set_errno(struct err *err, enum err_code code, int errno_value,
                            const char *format, ...) PRINTF_LIKE(4, 5);
/* As err_set, for a JSON member: pointer is a JSON pointer such as "/fileInputs/0/mode". With a
 * list every such fault is kept there. */
enum err_code err_set_at(struct err *err, enum err_code code, const char *pointer,
                         const char *format, ...) PRINTF_LIKE(4, 5);
/* Puts text before what is there ("queue quick: ..."); does nothing to an empty err. */
void err_prefix(struct err *err, const char *format, ...) PRINTF_LIKE(2, 3);
void err_clear(struct err *err);

const char *err_name(enum err_code code);  /* "NOT_FOUND"; "OK" for ERR_OK */
const char *err_title(enum err_code code); /* "Not found" */
const char *err_help(enum err_code code);  /* cause and cure, a sentence or two */
int err_number(enum err_code code);        /* 1020; 0 for ERR_OK */
int err_http(enum err_code code);          /* 404; 200 for ERR_OK */
enum err_settlement err_settlement(enum err_code code);

#endif
