/* SPDX-License-Identifier: MIT */
#include "cli/token_claims.h"

#include "common/auth/base64url.h"

#include <jansson.h>

#define CLAIMS_BYTES_MAX ((size_t)64 * 1024)

bool token_claims_read(const char *token, struct token_claims *ret_claims)
{
    const char *dot = strchr(token, '.');
    const char *end = dot ? strchr(dot + 1, '.') : NULL;
    BUF_AUTO struct buf text = BUF_INIT(CLAIMS_BYTES_MAX);
    if (!end || !base64url_decode((struct sv){dot + 1, (size_t)(end - dot - 1)}, &text))
        return false;
    json_t *claims = json_loadb(buf_text(&text), text.len, 0, NULL);
    const char *user = json_string_value(json_object_get(claims, "sub"));
    (void)snprintf(ret_claims->user, sizeof(ret_claims->user), "%s", user ? user : "");
    ret_claims->expires_s = (int64_t)json_number_value(json_object_get(claims, "exp"));
    bool good = json_is_object(claims);
    json_decref(claims);
    return good;
}
