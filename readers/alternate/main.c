/* SPDX-License-Identifier: MIT */

/* sluice-alternate: takes the messages that no queue was bound for. Each is kept as a row, and its
 * job waits in recovery until the queue is back. */

#include "readers/common/reader.h"

int main(int argc, char **argv)
{
    static const struct reader_kind kind = {
        .service = "sluice-alternate", .queue = BUS_QUEUE_ALTERNATE, .source = DEAD_ALTERNATE};
    return reader_main(&kind, argc, argv);
}
