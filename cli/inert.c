/* SPDX-License-Identifier: MIT */
#include "cli/cli.h"

/* What a terminal might obey or show in another order: C1 (a CSI among them), marks, embeddings,
 * overrides and isolates of direction, separators of lines. */
static const struct {
    const char *first;
    const char *last;
} hostile[] = {
    {"\xC2\x80", "\xC2\x9F"},                 /* U+0080 to U+009F */
    {"\xD8\x9C", "\xD8\x9C"},                 /* U+061C */
    {"\xE2\x80\x8E", "\xE2\x80\x8F"},         /* U+200E, U+200F */
    {"\xE2\x80\xA8", "\xE2\x80\xAE"},         /* U+2028 to U+202E */
    {"\xE2\x81\xA6", "\xE2\x81\xA9"},         /* U+2066 to U+2069 */
    {"\xF3\xA0\x80\x80", "\xF3\xA0\x81\xBF"}, /* U+E0000 to U+E007F: tags, which nobody sees */
};

/* Bytes of the hostile character at the beginning of the text; 0: it is none. */
static size_t hostile_length(const char *text)
{
    unsigned char first = (unsigned char)*text;
    if ((first < 0x20 && first != '\n' && first != '\t') || first == 0x7F)
        return 1;
    for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
        size_t length = strlen(hostile[i].first);
        if (strncmp(text, hostile[i].first, length) >= 0 &&
            strncmp(text, hostile[i].last, length) <= 0)
            return length;
    }
    return 0;
}

void cli_make_inert(char *text)
{
    char *to = text;
    while (*text) {
        size_t length = hostile_length(text);
        *to++ = length ? '?' : *text;
        text += length ? length : 1;
    }
    *to = 0;
}

void cli_put(FILE *out, const char *text)
{
    TEXT_AUTO char *copy = strdup(text);
    if (!copy)
        return;
    cli_make_inert(copy);
    (void)fputs(copy, out);
}
