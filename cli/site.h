/* SPDX-License-Identifier: MIT */
#ifndef CLI_SITE_H
#define CLI_SITE_H

/* site: which service a command talks to, with which token. In this order: --context; SLUICE_URL
 * (or client.url), with SLUICE_TOKEN or the token of the chosen context if that has the same
 * address; SLUICE_CONTEXT; the current context. A token goes to the address that it was kept for,
 * and nowhere else.
 * Threads: owner. Memory: site_done() frees. */

#include "common/base/base.h"

#include <jansson.h>

struct cli;

struct site {
    char *url;
    char *token; /* "" for none */
    char *ca;    /* file of CA certificates of the context; "" for none */
    char *name;  /* of the context whose token it is; "" for none */
};

/* CLI_DONE, or CLI_USAGE after telling why. */
MUST_USE int site_choose(struct cli *cli, struct site *ret_site);
void site_done(struct site *site);
/* When the token of this site expired, in words; "" if it has not, or does not say. */
void site_tell_expiry(const struct site *site, char *ret_text, size_t size);

#endif
