/* SPDX-License-Identifier: MIT */
#include "webapp/framing.h"

#include "tests/fuzz/fuzz.h"

#include <strings.h>

/* Input: the fields of a head, one in a line, name and value parted by the first colon. A head that
 * is taken has one length at most, one host, one token, and no byte that could be read as the end
 * of a field. */

#define FIELDS_MAX 64

struct MHD_Connection {
    struct sv names[FIELDS_MAX];
    struct sv values[FIELDS_MAX];
    size_t count;
};

/* In place of the library's: the calls of it that framing.c makes. This one looks at the ends of
 * lines itself. */
const char *MHD_get_version(void)
{
    return "1.0.0";
}

const union MHD_ConnectionInfo *MHD_get_connection_info(struct MHD_Connection *mhd,
                                                        enum MHD_ConnectionInfoType type, ...)
{
    (void)mhd;
    (void)type;
    return NULL;
}

int MHD_get_connection_values_n(struct MHD_Connection *mhd, enum MHD_ValueKind kind,
                                MHD_KeyValueIteratorN iterator, void *cls)
{
    for (size_t i = 0; i < mhd->count; i++) {
        struct sv name = mhd->names[i];
        struct sv value = mhd->values[i];
        if (iterator(cls, kind, name.ptr, name.len, value.ptr, value.len) == MHD_NO)
            break;
    }
    return (int)mhd->count;
}

static size_t count_of(const struct MHD_Connection *head, const char *name)
{
    size_t found = 0;
    for (size_t i = 0; i < head->count; i++)
        found += head->names[i].len == strlen(name) &&
                 strncasecmp(head->names[i].ptr, name, head->names[i].len) == 0;
    return found;
}

static void check_taken(const struct MHD_Connection *head)
{
    size_t lengths = count_of(head, "content-length");
    size_t encodings = count_of(head, "transfer-encoding");
    MUST(lengths <= 1 && encodings <= 1 && lengths + encodings <= 1);
    MUST(count_of(head, "host") <= 1 && count_of(head, "authorization") <= 1);
    for (size_t i = 0; i < head->count; i++) {
        struct sv name = head->names[i];
        struct sv value = head->values[i];
        MUST(name.len > 0 && !memchr(name.ptr, ' ', name.len) && !memchr(name.ptr, 0, name.len));
        MUST(value.len == 0 ||
             (!memchr(value.ptr, 0, value.len) && !memchr(value.ptr, '\r', value.len) &&
              !memchr(value.ptr, '\n', value.len)));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct MHD_Connection head = {.count = 0};
    const struct request_line asked = {.method = "GET", .version = "HTTP/1.0"};
    struct err err = {0};
    struct sv rest = {(const char *)bytes, size};
    while (rest.len > 0 && head.count < FIELDS_MAX) {
        struct sv next;
        struct sv line = first_line((const uint8_t *)rest.ptr, rest.len, &next);
        const char *colon = line.len ? memchr(line.ptr, ':', line.len) : NULL;
        size_t length = colon ? (size_t)(colon - line.ptr) : line.len;
        head.names[head.count] = (struct sv){line.ptr, length};
        head.values[head.count++] =
            colon ? (struct sv){colon + 1, line.len - length - 1} : (struct sv){"", 0};
        rest = next;
    }
    if (framing_check(&head, &asked, &err) == ERR_OK)
        check_taken(&head);
    else
        MUST(err.code == ERR_MALFORMED && err.text[0]);
    return 0;
}
