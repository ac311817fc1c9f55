/* SPDX-License-Identifier: MIT */
#ifndef COMMON_FILTER_LEXER_H
#define COMMON_FILTER_LEXER_H

/* lexer: a filter's text in tokens. Threads: owner. Memory: tokens borrow the text. */

#include "common/base/sv.h"

enum token_kind {
    TOKEN_END,
    TOKEN_NAME,    /* letters, digits, _ and . between them; not a keyword */
    TOKEN_STRING,  /* with its quotes, and '' inside still doubled */
    TOKEN_INTEGER, /* digits */
    TOKEN_DECIMAL, /* with a point or an exponent */
    TOKEN_AND,
    TOKEN_OR,
    TOKEN_NOT,
    TOKEN_BETWEEN,
    TOKEN_IN,
    TOKEN_LIKE,
    TOKEN_ESCAPE,
    TOKEN_IS,
    TOKEN_NULL,
    TOKEN_TRUE,
    TOKEN_FALSE,
    TOKEN_EQ,
    TOKEN_NE,
    TOKEN_LT,
    TOKEN_LE,
    TOKEN_GT,
    TOKEN_GE,
    TOKEN_PLUS,
    TOKEN_MINUS,
    TOKEN_STAR,
    TOKEN_SLASH,
    TOKEN_OPEN,
    TOKEN_CLOSE,
    TOKEN_COMMA,
    TOKEN_OPEN_STRING, /* a string without its end */
    TOKEN_BAD_NUMBER,  /* such as 12abc or 1e */
    TOKEN_BAD,         /* a character that means nothing here */
};

struct token {
    enum token_kind kind;
    size_t at;      /* byte in the text */
    struct sv text; /* as it stands there */
};

/* The token at or after byte `at`; the text must be UTF-8. */
struct token lexer_next(struct sv text, size_t at);

#endif
