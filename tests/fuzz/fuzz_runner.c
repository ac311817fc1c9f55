/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/fuzz.h"
#include "worker/runner/protocol.h"

/* Input: bytes that come over the socket between a worker and its runner: messages, each behind
 * four bytes of length. What is taken of a start is whole. */

static void check_start(const json_t *message)
{
    struct runner_start start = {.argv = NULL};
    struct err err = {0};
    if (protocol_start_parse(message, &start, &err) != ERR_OK) {
        MUST(err.text[0]);
        return;
    }
    MUST(start.argv && start.argv[0]);
    protocol_start_clear(&start);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    BUF_AUTO struct buf in = BUF_INIT(2 * RUNNER_REQUEST_MAX);
    struct err err = {0};
    buf_add(&in, bytes, size);
    while (!in.failed) {
        json_t *message = NULL;
        size_t before = in.len;
        if (protocol_unpack(&in, RUNNER_REQUEST_MAX, &message, &err) != ERR_OK) {
            MUST(err.code == ERR_PROTOCOL && err.text[0]);
            break;
        }
        if (!message)
            break;
        MUST(in.len < before);
        check_start(message);
        struct err answer = {0};
        (void)protocol_answer_error(message, &answer);
        json_decref(message);
    }
    return 0;
}
