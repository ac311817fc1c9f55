/* SPDX-License-Identifier: MIT */
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

/* doctor: what the files of `sluice doctor` share: the site as far as it could be reached, and the
 * findings. One thread. Memory: cmd_doctor() frees all of it. */

#include "cli/cli.h"
#include "common/bus/inspect.h"
#include "common/store/queue_store.h"
#include "common/store/site_store.h"

enum doctor_grade { DOCTOR_OK, DOCTOR_WARNING, DOCTOR_FAULT, DOCTOR_CANNOT_TELL };

#define PRESENT_MS 35000      /* as common/service/presence.h has it */
#define DOCTOR_QUEUES_MAX 256 /* queues that are looked at */

struct doctor {
    const struct config *cfg;
    struct store_config db;
    struct site_look site;
    struct store *store;                        /* NULL: no database, or not a schema of ours */
    struct bus_inspector *bus;                  /* NULL: no broker */
    struct job_queue queues[DOCTOR_QUEUES_MAX]; /* of all tenants */
    size_t queue_count;
    bool dead_reader, alternate_reader; /* somebody consumes there */
    bool blocked;                       /* the broker takes no messages */
    const char *check;                  /* the name of the one under way */
    json_t *findings;
    bool fault;
};

/* cure "" for none. */
void doctor_find(struct doctor *doctor, enum doctor_grade grade, const char *cure,
                 const char *format, ...) PRINTF_LIKE(4, 5);

#define DOCTOR_OFFSET_SIZE 48
/* "90 s ahead of", "1500 ms behind", into DOCTOR_OFFSET_SIZE bytes, which are returned. */
const char *doctor_offset(int64_t offset_ms, char *ret_text);

#define DOCTOR_CHECK(id, name, needs) void doctor_##id(struct doctor *doctor);
#include "cli/doctor.def"
#undef DOCTOR_CHECK

#endif
