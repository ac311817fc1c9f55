/* SPDX-License-Identifier: MIT */
#ifndef WORKER_FETCH_ADDRESS_H
#define WORKER_FETCH_ADDRESS_H

/* fetch_address: the addresses of inputs, for fetch.c. Threads: any. Memory: none. */

#include "worker/fetch.h"

#include <curl/curl.h>

/* Host, port and the address without what may be secret; url is changed. false: it has no host, or
 * is too long. */
MUST_USE bool fetch_split(CURLU *url, struct fetch_cause *cause);

#endif
