/* SPDX-License-Identifier: MIT */
/* GET /errors/{code}: what the `type` of a problem leads to. */
#include "webapp/handlers.h"
#include "webapp/request.h"

static bool is_code(struct sv text, enum err_code code)
{
    char name[24];
    (void)snprintf(name, sizeof(name), "SLUICE-%d", err_number(code));
    return sv_is(text, name);
}

enum err_code error_page(struct request *req, struct err *err)
{
    struct sv text = req->match.params[0];
    int code = ERR_OK + 1;
    while (code < ERR_CODE_COUNT && !is_code(text, (enum err_code)code))
        code++;
    if (code == ERR_CODE_COUNT)
        return err_set(err, ERR_NOT_FOUND, "there is no error %.*s",
                       (int)(text.len < 40 ? text.len : 40), text.ptr);
    char name[24];
    (void)snprintf(name, sizeof(name), "SLUICE-%d", err_number((enum err_code)code));
    reply_json(req, MHD_HTTP_OK,
               json_pack("{s:s,s:s,s:i,s:s}", "code", name, "title", err_title((enum err_code)code),
                         "status", err_http((enum err_code)code), "help",
                         err_help((enum err_code)code)));
    reply_header(req, "Cache-Control", "max-age=3600");
    return ERR_OK;
}
