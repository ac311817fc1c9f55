/* SPDX-License-Identifier: MIT */
#include "worker/runner/confine.h"
#include "worker/runner/protocol.h"

json_t *confine_json(const struct runner_confine *wanted)
{
    json_t *made = json_pack(
        "{s:i, s:o, s:o, s:o}", "mode", (int)wanted->mode, "read", protocol_list_json(wanted->read),
        "write", protocol_list_json(wanted->write), "deny", protocol_list_json(wanted->deny));
    if (made && wanted->other_user) {
        (void)json_object_set_new(made, "uid", json_integer((json_int_t)wanted->uid));
        (void)json_object_set_new(made, "gid", json_integer((json_int_t)wanted->gid));
    }
    return made;
}
