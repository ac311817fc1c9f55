/* SPDX-License-Identifier: MIT */
#include "common/filter/lexer.h"

#include <strings.h>

static const struct {
    const char *word;
    enum token_kind kind;
} keywords[] = {
    {"AND", TOKEN_AND},   {"OR", TOKEN_OR},     {"NOT", TOKEN_NOT},     {"BETWEEN", TOKEN_BETWEEN},
    {"IN", TOKEN_IN},     {"LIKE", TOKEN_LIKE}, {"IS", TOKEN_IS},       {"ESCAPE", TOKEN_ESCAPE},
    {"NULL", TOKEN_NULL}, {"TRUE", TOKEN_TRUE}, {"FALSE", TOKEN_FALSE},
};

/* Longer signs first. */
static const struct {
    const char *sign;
    enum token_kind kind;
} signs[] = {
    {"<>", TOKEN_NE},   {"<=", TOKEN_LE},   {">=", TOKEN_GE},  {"<", TOKEN_LT},
    {">", TOKEN_GT},    {"=", TOKEN_EQ},    {"+", TOKEN_PLUS}, {"-", TOKEN_MINUS},
    {"*", TOKEN_STAR},  {"/", TOKEN_SLASH}, {"(", TOKEN_OPEN}, {")", TOKEN_CLOSE},
    {",", TOKEN_COMMA},
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_name(char c)
{
    return is_name_start(c) || is_digit(c);
}

/* The byte there, or NUL behind the end. */
static char byte_at(struct sv text, size_t at)
{
    return at < text.len ? text.ptr[at] : 0;
}

static struct token token_of(enum token_kind kind, struct sv text, size_t at, size_t end)
{
    return (struct token){kind, at, {text.ptr + at, end - at}};
}

static struct token name_token(struct sv text, size_t at)
{
    size_t end = at;
    while (is_name(byte_at(text, end)) ||
           (byte_at(text, end) == '.' && is_name_start(byte_at(text, end + 1))))
        end++;
    for (size_t i = 0; i < ARRAY_LEN(keywords); i++) {
        if (strlen(keywords[i].word) == end - at &&
            strncasecmp(keywords[i].word, text.ptr + at, end - at) == 0)
            return token_of(keywords[i].kind, text, at, end);
    }
    return token_of(TOKEN_NAME, text, at, end);
}

static size_t skip_digits(struct sv text, size_t at)
{
    while (is_digit(byte_at(text, at)))
        at++;
    return at;
}

static struct token number_token(struct sv text, size_t at)
{
    enum token_kind kind = TOKEN_INTEGER;
    size_t end = skip_digits(text, at);
    if (byte_at(text, end) == '.') {
        kind = TOKEN_DECIMAL;
        end = skip_digits(text, end + 1);
    }
    if (byte_at(text, end) == 'e' || byte_at(text, end) == 'E') {
        kind = TOKEN_DECIMAL;
        end++;
        if (byte_at(text, end) == '+' || byte_at(text, end) == '-')
            end++;
        if (!is_digit(byte_at(text, end)))
            kind = TOKEN_BAD_NUMBER;
        end = skip_digits(text, end);
    }
    while (is_name(byte_at(text, end)) || byte_at(text, end) == '.') {
        kind = TOKEN_BAD_NUMBER;
        end++;
    }
    return token_of(kind, text, at, end);
}

static struct token string_token(struct sv text, size_t at)
{
    for (size_t end = at + 1; end < text.len; end++) {
        if (text.ptr[end] != '\'')
            continue;
        if (byte_at(text, end + 1) != '\'')
            return token_of(TOKEN_STRING, text, at, end + 1);
        end++; /* '' is a quote in the string */
    }
    return token_of(TOKEN_OPEN_STRING, text, at, text.len);
}

static struct token sign_token(struct sv text, size_t at)
{
    for (size_t i = 0; i < ARRAY_LEN(signs); i++) {
        size_t length = strlen(signs[i].sign);
        if (text.len - at >= length && memcmp(text.ptr + at, signs[i].sign, length) == 0)
            return token_of(signs[i].kind, text, at, at + length);
    }
    size_t end = at + 1; /* a character, not a byte */
    while (end < text.len && ((unsigned char)text.ptr[end] & 0xC0) == 0x80)
        end++;
    return token_of(TOKEN_BAD, text, at, end);
}

struct token lexer_next(struct sv text, size_t at)
{
    while (at < text.len && is_space(text.ptr[at]))
        at++;
    if (at >= text.len)
        return token_of(TOKEN_END, text, text.len, text.len);
    char c = text.ptr[at];
    if (is_name_start(c))
        return name_token(text, at);
    if (is_digit(c) || (c == '.' && is_digit(byte_at(text, at + 1))))
        return number_token(text, at);
    if (c == '\'')
        return string_token(text, at);
    return sign_token(text, at);
}
