/* SPDX-License-Identifier: MIT */
/* What the doctor asks of the broker without sending a message. */

#include "cli/doctor.h"
#include "common/base/clock.h"
#include "common/base/hosts.h"
#include "common/store/tenant_store.h"

#include <time.h>

#define SERVED_MS 3000
#define VERSION_LEAST 310 /* 3.10: at-least-once dead letters, time to live in quorum queues */

#define CURE_MISSING                                                                               \
    "start sluice-web, or any other program of the site: it declares what is missing"
#define CURE_OTHER                                                                                 \
    "when it is empty delete it and start sluice-web again, which declares it as it should be"

static struct bus_config bus_of(const struct config *cfg, const struct host *node)
{
    return (struct bus_config){
        .host = node->name,
        .user = cfg->amqp_user,
        .password = cfg->amqp_password,
        .vhost = cfg->amqp_vhost,
        .tls_ca = cfg->amqp_tls_ca,
        .tls_cert = cfg->amqp_tls_cert,
        .tls_key = cfg->amqp_tls_key,
        .port = node->port,
        .connect_timeout_ms = (int)cfg->amqp_connect_timeout_ms,
        .delivery_limit = cfg->amqp_delivery_limit,
    };
}

static void judge_version(struct doctor *doctor, const char *version, const struct host *node)
{
    char *rest = NULL;
    long major = strtol(version, &rest, 10);
    long minor = rest && *rest == '.' ? strtol(rest + 1, NULL, 10) : 0;
    if (major * 100 + minor < VERSION_LEAST)
        doctor_find(doctor, DOCTOR_FAULT, "install RabbitMQ 3.10 or newer",
                    "RabbitMQ %s has no dead letters that survive its restart", version);
    else
        doctor_find(doctor, DOCTOR_OK, "", "RabbitMQ %s answers at %s port %d", version, node->name,
                    node->port);
}

/* What is most likely first. */
static const char *cure_of(const struct err *away)
{
    if (strstr(away->text, "ACCESS_REFUSED"))
        return "check amqp.user and amqp.password: the broker runs, and does not let them in";
    if (strstr(away->text, "NOT_ALLOWED") || strstr(away->text, "vhost"))
        return "check amqp.vhost, and the rights of amqp.user there: the broker runs";
    return "start the broker; check amqp.host, amqp.port and amqp.tls_ca";
}

/* All further looks are at the first node that answers. */
void doctor_broker(struct doctor *doctor)
{
    const struct config *cfg = doctor->cfg;
    unsigned count = hosts_count(cfg->amqp_host);
    struct err away[HOSTS_MAX] = {0};
    for (unsigned i = 0; i < count; i++) {
        AUTO(bus_inspector_free) struct bus_inspector *bus = NULL;
        struct host node;
        if (!hosts_at(cfg->amqp_host, i, (int)cfg->amqp_port, &node))
            continue;
        const struct bus_config at = bus_of(cfg, &node);
        if (bus_inspector_open(&at, &bus, &away[i]))
            continue;
        judge_version(doctor, bus_inspector_version(bus), &node);
        if (!doctor->bus)
            doctor->bus = TAKE(bus);
    }
    for (unsigned i = 0; i < count; i++)
        if (away[i].code && doctor->bus)
            doctor_find(doctor, DOCTOR_WARNING,
                        "start this node again, or take it out of the cluster and of amqp.host",
                        "%s", away[i].text);
        else if (away[i].code)
            doctor_find(doctor, DOCTOR_FAULT, cure_of(&away[i]), "%s", away[i].text);
}

/* true: it is as it should be. */
static bool judge(struct doctor *doctor, const char *what, const char *name, enum err_code rc,
                  const struct bus_looked *looked, const struct err *err)
{
    if (rc)
        doctor_find(doctor, DOCTOR_CANNOT_TELL, "run it again; look at the broker's log",
                    "%s %s: %s", what, name, err->text);
    else if (looked->look == BUS_LOOK_MISSING)
        doctor_find(doctor, DOCTOR_FAULT, CURE_MISSING, "%s %s is missing", what, name);
    else if (looked->look == BUS_LOOK_OTHER)
        doctor_find(doctor, DOCTOR_FAULT, CURE_OTHER, "%s %s has other properties: %s", what, name,
                    looked->text);
    return rc == ERR_OK && looked->look == BUS_LOOK_SAME;
}

void doctor_exchanges(struct doctor *doctor)
{
    size_t good = 0;
    for (int i = 0; i < BUS_EXCHANGE_COUNT; i++) {
        struct bus_looked looked = {0};
        struct err err = {0};
        enum bus_exchange exchange = (enum bus_exchange)i;
        if (exchange == BUS_DEFER)
            continue;
        enum err_code rc = bus_inspect_exchange(doctor->bus, exchange, &looked, &err);
        good += judge(doctor, "exchange", bus_exchange_name(exchange), rc, &looked, &err);
    }
    if (good == BUS_EXCHANGE_COUNT - 1)
        doctor_find(doctor, DOCTOR_OK, "", "all %zu are as declared", good);
}

/* ---- queues --------------------------------------------------------------------------------- */

static bool check_queue(struct doctor *doctor, enum bus_queue_kind kind, const char *name,
                        enum bus_queue_type type)
{
    struct bus_looked looked = {0};
    struct err err = {0};
    enum err_code rc = bus_inspect_queue(doctor->bus, kind, name, type, &looked, &err);
    if (rc == ERR_OK && kind == BUS_QUEUE_DEAD)
        doctor->dead_reader = looked.consumers > 0;
    if (rc == ERR_OK && kind == BUS_QUEUE_ALTERNATE)
        doctor->alternate_reader = looked.consumers > 0;
    /* A queue that nobody has used yet is declared with its first message. */
    if (rc == ERR_OK && looked.look == BUS_LOOK_MISSING && kind == BUS_QUEUE_SUBMIT) {
        doctor_find(doctor, DOCTOR_WARNING,
                    "nothing, if no job was ever sent there; else start a worker of it, or let "
                    "sluice-recovery do it",
                    "queue %s is not there", name);
        return true;
    }
    return judge(doctor, "queue", name, rc, &looked, &err);
}

void doctor_queues(struct doctor *doctor)
{
    bool good = check_queue(doctor, BUS_QUEUE_DEAD, bus_queue_name(BUS_QUEUE_DEAD), BUS_QUORUM);
    good =
        check_queue(doctor, BUS_QUEUE_ALTERNATE, bus_queue_name(BUS_QUEUE_ALTERNATE), BUS_QUORUM) &&
        good;
    for (size_t i = 0; i < doctor->queue_count; i++) {
        const struct job_queue *queue = &doctor->queues[i];
        enum bus_queue_type type = BUS_QUORUM;
        char name[BUS_NAME_SIZE];
        if (!bus_queue_type_parse(sv_of(queue->queue_type), &type))
            type = BUS_QUORUM;
        good = check_queue(doctor, BUS_QUEUE_SUBMIT,
                           bus_submit_queue(queue->tenant, queue->name, name), type) &&
               good;
    }
    if (good)
        doctor_find(doctor, DOCTOR_OK, "",
                    "all that are there are as declared, and redeliver %u times",
                    doctor->cfg->amqp_delivery_limit);
}

/* ---- who reads them ------------------------------------------------------------------------- */

/* A tenant that has just come, or has work again, is served within a second: look more than once.
 */
static enum err_code look_at_recovery(struct doctor *doctor, const char *name,
                                      struct bus_looked *looked, struct err *err)
{
    static const struct timespec pause = {.tv_nsec = 200000000};
    int64_t until_ms = clock_mono_ms() + SERVED_MS;
    for (;;) {
        err_clear(err);
        enum err_code rc =
            bus_inspect_queue(doctor->bus, BUS_QUEUE_RECOVERY, name, BUS_QUORUM, looked, err);
        if (rc || looked->look == BUS_LOOK_OTHER || looked->consumers > 0 ||
            clock_mono_ms() >= until_ms)
            return rc;
        (void)nanosleep(&pause, NULL);
    }
}

static bool check_recovery(struct doctor *doctor, const char *tenant)
{
    struct bus_looked looked = {0};
    struct err err = {0};
    char name[BUS_NAME_SIZE];
    (void)bus_recovery_queue(tenant, name);
    enum err_code rc = look_at_recovery(doctor, name, &looked, &err);
    if (rc == ERR_OK && looked.look != BUS_LOOK_OTHER && looked.consumers == 0) {
        doctor_find(doctor, DOCTOR_FAULT, "start sluice-recovery, and see its log for this tenant",
                    "sluice-recovery does not run for tenant %s: blocked jobs do not go on",
                    tenant);
        return false;
    }
    return judge(doctor, "queue", name, rc, &looked, &err);
}

/* Tenants without work rest; the others must be served. */
static bool check_recoveries(struct doctor *doctor)
{
    struct tenant_name *tenants = NULL;
    size_t count = 0;
    struct err err = {0};
    bool good = true;
    enum err_code rc = tenant_store_list_waiting(doctor->store, &tenants, &count, &err);
    if (rc)
        doctor_find(doctor, DOCTOR_CANNOT_TELL, "", "which tenants recovery serves: %s", err.text);
    for (size_t i = 0; i < count; i++)
        good = check_recovery(doctor, tenants[i].text) && good;
    free(tenants);
    return good && rc == ERR_OK;
}

void doctor_readers(struct doctor *doctor)
{
    bool good = doctor->dead_reader && doctor->alternate_reader;
    if (!doctor->dead_reader)
        doctor_find(doctor, DOCTOR_FAULT, "start sluice-deadletter",
                    "sluice-deadletter does not run: dead letters stay in sluice.dead, and their "
                    "jobs wait");
    if (!doctor->alternate_reader)
        doctor_find(doctor, DOCTOR_FAULT, "start sluice-alternate",
                    "sluice-alternate does not run: messages without a queue stay in "
                    "sluice.alternate, and their jobs wait");
    good = check_recoveries(doctor) && good;
    if (good)
        doctor_find(doctor, DOCTOR_OK, "",
                    "sluice-recovery, sluice-deadletter and "
                    "sluice-alternate read their queues");
}
