/* SPDX-License-Identifier: MIT */
#ifndef READERS_COMMON_READER_H
#define READERS_COMMON_READER_H

/* reader: the program around one dead queue of the site: takes message after message, acknowledges
 * what handle_delivery() has stored, and waits out outages of the database and the broker. The
 * queue has a single active consumer: of several processes one works, the others stand by.
 * SIGTERM ends it with 0; exit codes else: 1 cannot run (said on stderr), 2 usage. */

#include "common/bus/bus.h"
#include "common/store/dead_store.h"

struct reader_kind {
    const char *service;
    enum bus_queue_kind queue;
    enum dead_source source;
};

int reader_main(const struct reader_kind *kind, int argc, char **argv);

#endif
