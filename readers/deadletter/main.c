/* SPDX-License-Identifier: MIT */

/* sluice-deadletter: takes the messages that a queue gave up. Each is kept as a row, and a job that
 * waits for nothing else ends FAILED. */

#include "readers/common/reader.h"

int main(int argc, char **argv)
{
    static const struct reader_kind kind = {
        .service = "sluice-deadletter", .queue = BUS_QUEUE_DEAD, .source = DEAD_LETTER};
    return reader_main(&kind, argc, argv);
}
