/* SPDX-License-Identifier: MIT */
#include "webapp/handlers.h"

#include "webapp/job_view.h"
#include "webapp/request.h"

enum err_code whoami(struct request *req, struct err *err)
{
    (void)err;
    json_t *roles = json_array();
    for (int role = 0; role < ROLE_COUNT; role++) {
        if (auth_has_role(&req->who, (enum role)role))
            json_array_append_new(roles, json_string(role_name((enum role)role)));
    }
    reply_json(req, MHD_HTTP_OK,
               json_pack("{s:o,s:s,s:o,s:o}", "user", view_text(req->who.user), "tenant",
                         req->who.tenant, "roles", roles, "expires",
                         view_time(req->who.expires_s * 1000000)));
    return ERR_OK;
}
