/* SPDX-License-Identifier: MIT */
#ifndef CLI_CONTEXTS_H
#define CLI_CONTEXTS_H

/* contexts: the sites that the command line knows by a name, in contexts.json of
 * $XDG_CONFIG_HOME/sluice (default ~/.config/sluice), mode 0600:
 *
 *   {"current": NAME, "contexts": {NAME: {"url", "token", "tenant", "ca", "state"}}}
 *
 * state is the folder of the `sluice dev` that made the context; others have none. While there is
 * no such file, the profile.json of former versions is read as the context "profile". Threads:
 * owner; processes take turns by a lock file. Memory: documents are jansson's, the caller's to
 * drop. */

#include "common/base/base.h"
#include "common/base/err.h"

#include <jansson.h>

#define CONTEXT_NAME_SIZE 65
#define CONTEXTS_MAX 200 /* in one file */

/* Letters, digits, '.', '_' and '-', 64 at most, no '.' or '-' first. */
MUST_USE bool context_name_is_valid(const char *name);

/* An empty document if there is no file. ERR_CONFIG: it cannot be read. */
MUST_USE enum err_code contexts_load(json_t **ret_doc, struct err *err);
json_t *contexts_find(const json_t *doc, const char *name); /* NULL: no such context */
const char *contexts_current(const json_t *doc);            /* "" for none */
void contexts_set_current(json_t *doc, const char *name);
/* Takes the context over. ERR_LIMIT beyond CONTEXTS_MAX. */
MUST_USE enum err_code contexts_put(json_t *doc, const char *name, json_t *take_context,
                                    struct err *err);

/* Reads, changes and writes while no other process does. Nothing is written if change fails. */
typedef enum err_code contexts_change_fn(json_t *doc, void *arg, struct err *err);
MUST_USE enum err_code contexts_change(contexts_change_fn *change, void *arg, struct err *err);

/* The context of the `sluice dev` in this state folder: made, or brought up to date. It becomes the
 * current one only if there is none, or it was already. */
struct contexts_dev {
    const char *state;
    const char *url;
    const char *token;
    const char *tenant;
    uint16_t port;
};
MUST_USE enum err_code contexts_keep_dev(const struct contexts_dev *dev, struct err *err);

#endif
