/* SPDX-License-Identifier: MIT */
#include "common/model/message.h"
#include "tests/fuzz/fuzz.h"

/* Input: the body of an AMQP message. What is taken is written as it was read. */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct message message;
    struct message again;
    struct err err = {0};
    char text[MESSAGE_SIZE_MAX];
    if (message_read((struct sv){(const char *)bytes, size}, &message, &err) != ERR_OK) {
        MUST(err.code == ERR_MALFORMED || err.code == ERR_TOO_LARGE);
        MUST(err.text[0] && err_settlement(err.code) == SETTLE_REJECT);
        return 0;
    }
    MUST(size <= MESSAGE_SIZE_MAX && message.epoch >= 1);
    size_t length = message_write(&message, text);
    MUST(length < sizeof(text) && text[length] == 0);
    MUST(message_read((struct sv){text, length}, &again, &err) == ERR_OK);
    MUST(again.epoch == message.epoch && uuid_eq(&again.job, &message.job));
    return 0;
}
