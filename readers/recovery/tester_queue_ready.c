/* SPDX-License-Identifier: MIT */
#include "common/store/queue_store.h"
#include "readers/recovery/tester.h"

/* The queue as it was saved: declared and bound again, then looked for. */
static struct test_answer declare(const struct test_question *question, const char *queue,
                                  enum bus_queue_type type)
{
    struct err err = {0};
    char name[BUS_NAME_SIZE];
    struct bus_publisher *pub = question->site->publisher;
    (void)bus_submit_queue(question->tenant, queue, name);
    enum err_code rc = bus_queue_declare(pub, name, type, question->deadline_ms, &err);
    if (rc == ERR_OK)
        rc = bus_queue_depth(pub, name, question->deadline_ms, NULL, NULL, &err);
    if (rc == ERR_OK)
        return test_clear(TEST_ALL_JOBS);
    return rc == ERR_BROKER || rc == ERR_NOT_FOUND ? test_says(TEST_NOT_YET, "%s", err.text)
                                                   : test_failed(&err);
}

struct test_answer tester_queue_ready(const struct test_question *question)
{
    const char *name = test_param(question, "queue");
    struct err err = {0};
    struct job_queue queue = {0};
    enum bus_queue_type type = BUS_QUORUM;
    if (!name)
        return test_lacks("queue");
    enum err_code rc = queue_store_get(question->site->store, question->tenant, name, &queue, &err);
    if (rc == ERR_OK && !bus_queue_type_parse(sv_of(queue.queue_type), &type))
        type = BUS_QUORUM;
    job_queue_done(&queue);
    if (rc == ERR_NOT_FOUND)
        return test_says(TEST_NOT_YET, "there is no queue %s", name);
    return rc ? test_failed(&err) : declare(question, name, type);
}
