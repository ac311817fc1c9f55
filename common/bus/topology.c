/* SPDX-License-Identifier: MIT */
#include "common/bus/topology.h"

#include "common/base/log.h"

#include <assert.h>
#include <stdio.h>

#define REPLY_TEXT_SIZE 256

enum arg_when { WHEN_ALWAYS, WHEN_QUORUM };
enum arg_kind { KIND_TEXT, KIND_NUMBER, KIND_FLAG, KIND_LIMIT, KIND_TTL };
enum queue_type_row { TYPE_QUORUM, TYPE_CLASSIC, TYPE_CHOSEN };
enum queue_life { LIFE_DURABLE, LIFE_EXCLUSIVE };

static const char *const type_names[] = {[BUS_QUORUM] = "quorum", [BUS_CLASSIC] = "classic"};

static const struct topology_exchange exchange_table[] = {
#define BUS_EXCHANGE(id, name, type, alternate) [BUS_##id] = {name, type, alternate},
#include "common/bus/topology.def"
};

static const struct topology_queue queue_table[] = {
#define BUS_QUEUE(id, name, type, life, exchange)                                                  \
    [BUS_QUEUE_##id] = {name, TYPE_##type == TYPE_CHOSEN,                                          \
                        TYPE_##type == TYPE_CLASSIC ? BUS_CLASSIC : BUS_QUORUM,                    \
                        LIFE_##life == LIFE_EXCLUSIVE, BUS_##exchange},
#include "common/bus/topology.def"
};

static const struct arg_row {
    enum bus_queue_kind queue;
    enum arg_when when;
    const char *key;
    enum arg_kind kind;
    int number;
    const char *text;
} arg_table[] = {
#define BUS_ARG(queue, when, key, kind, number, text)                                              \
    {BUS_QUEUE_##queue, WHEN_##when, key, KIND_##kind, number, text},
#include "common/bus/topology.def"
};

const char *bus_submit_queue(const char *tenant, const char *queue, char *ret_name)
{
    (void)snprintf(ret_name, BUS_NAME_SIZE, "sluice.%s.submit.%s", tenant, queue);
    return ret_name;
}

bool bus_split_submit_queue(const char *name, char *ret_tenant, size_t tenant_size, char *ret_queue,
                            size_t queue_size)
{
    static const char before[] = "sluice.";
    static const char between[] = ".submit.";
    if (strncmp(name, before, strlen(before)) != 0)
        return false;
    struct sv tenant = {name + strlen(before), strcspn(name + strlen(before), ".")};
    const char *rest = tenant.ptr + tenant.len;
    if (tenant.len == 0 || strncmp(rest, between, strlen(between)) != 0)
        return false;
    struct sv queue = sv_of(rest + strlen(between));
    return queue.len > 0 && sv_copy(tenant, ret_tenant, tenant_size) &&
           sv_copy(queue, ret_queue, queue_size);
}

const char *bus_recovery_queue(const char *tenant, char *ret_name)
{
    (void)snprintf(ret_name, BUS_NAME_SIZE, "sluice.%s.recovery", tenant);
    return ret_name;
}

const char *bus_worker_queue(const char *worker_id, char *ret_name)
{
    (void)snprintf(ret_name, BUS_NAME_SIZE, "sluice.worker.%s", worker_id);
    return ret_name;
}

const char *bus_queue_name(enum bus_queue_kind kind)
{
    return queue_table[kind].name;
}

const char *bus_exchange_name(enum bus_exchange exchange)
{
    return exchange_table[exchange].name;
}

bool bus_exchange_parse(struct sv text, enum bus_exchange *ret_exchange)
{
    for (size_t i = 0; i < ARRAY_LEN(exchange_table); i++) {
        if (sv_is(text, exchange_table[i].name)) {
            *ret_exchange = (enum bus_exchange)i;
            return true;
        }
    }
    return false;
}

const char *bus_queue_type_text(enum bus_queue_type type)
{
    return type_names[type];
}

bool bus_queue_type_parse(struct sv text, enum bus_queue_type *ret_type)
{
    for (size_t i = 0; i < ARRAY_LEN(type_names); i++) {
        if (sv_is(text, type_names[i])) {
            *ret_type = (enum bus_queue_type)i;
            return true;
        }
    }
    return false;
}

const struct topology_exchange *topology_exchange(enum bus_exchange exchange)
{
    return &exchange_table[exchange];
}

const struct topology_queue *topology_queue(enum bus_queue_kind kind)
{
    return &queue_table[kind];
}

static amqp_table_entry_t *add_entry(struct topology_args *args, const char *key)
{
    assert(args->table.num_entries < TOPOLOGY_ARGS_MAX);
    amqp_table_entry_t *entry = &args->entries[args->table.num_entries++];
    *entry = (amqp_table_entry_t){.key = amqp_cstring_bytes(key)};
    return entry;
}

static void add_text(struct topology_args *args, const char *key, const char *text)
{
    amqp_table_entry_t *entry = add_entry(args, key);
    entry->value.kind = AMQP_FIELD_KIND_UTF8;
    entry->value.value.bytes = amqp_cstring_bytes(text);
}

static void add_number(struct topology_args *args, const char *key, int64_t number)
{
    amqp_table_entry_t *entry = add_entry(args, key);
    entry->value.kind = AMQP_FIELD_KIND_I64;
    entry->value.value.i64 = number;
}

static void add_row(struct topology_args *args, const struct arg_row *row,
                    const struct topology_choice *choice)
{
    switch (row->kind) {
    case KIND_TEXT:
        add_text(args, row->key, row->text);
        return;
    case KIND_NUMBER:
        add_number(args, row->key, row->number);
        return;
    case KIND_LIMIT:
        add_number(args, row->key, choice->delivery_limit);
        return;
    case KIND_TTL:
        add_number(args, row->key, (int64_t)choice->ttl_s * 1000);
        return;
    case KIND_FLAG: {
        amqp_table_entry_t *entry = add_entry(args, row->key);
        entry->value.kind = AMQP_FIELD_KIND_BOOLEAN;
        entry->value.value.boolean = row->number != 0;
        return;
    }
    }
}

void topology_exchange_args(enum bus_exchange exchange, struct topology_args *ret_args)
{
    *ret_args = (struct topology_args){0};
    ret_args->table.entries = ret_args->entries;
    if (exchange_table[exchange].alternate[0])
        add_text(ret_args, "alternate-exchange", exchange_table[exchange].alternate);
}

void topology_queue_args(enum bus_queue_kind kind, const struct topology_choice *choice,
                         struct topology_args *ret_args)
{
    const struct topology_queue *queue = &queue_table[kind];
    enum bus_queue_type type = queue->type_is_given ? choice->type : queue->type;
    *ret_args = (struct topology_args){0};
    ret_args->table.entries = ret_args->entries;
    add_text(ret_args, "x-queue-type", type_names[type]);
    for (size_t i = 0; i < ARRAY_LEN(arg_table); i++) {
        const struct arg_row *row = &arg_table[i];
        if (row->queue == kind && (row->when == WHEN_ALWAYS || type == BUS_QUORUM))
            add_row(ret_args, row, choice);
    }
}

const char *topology_reply_text(const amqp_rpc_reply_t *reply, char *ret_text, size_t size)
{
    amqp_bytes_t text = {0};
    if (reply->reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION)
        return amqp_error_string2(reply->library_error);
    if (reply->reply_type != AMQP_RESPONSE_SERVER_EXCEPTION)
        return "no error";
    if (reply->reply.id == AMQP_CHANNEL_CLOSE_METHOD)
        text = ((const amqp_channel_close_t *)reply->reply.decoded)->reply_text;
    else if (reply->reply.id == AMQP_CONNECTION_CLOSE_METHOD)
        text = ((const amqp_connection_close_t *)reply->reply.decoded)->reply_text;
    (void)snprintf(ret_text, size, "%.*s", (int)text.len, text.len ? (char *)text.bytes : "");
    return ret_text;
}

/* After an answer: ERR_OK, or ERR_OK with the channel opened again if what exists has other
 * properties, or the connection's end. */
static enum err_code check_answer(amqp_connection_state_t amqp, amqp_channel_t channel,
                                  const char *name, struct err *err)
{
    char text[REPLY_TEXT_SIZE];
    amqp_rpc_reply_t reply = amqp_get_rpc_reply(amqp);
    if (reply.reply_type == AMQP_RESPONSE_NORMAL)
        return ERR_OK;
    const char *why = topology_reply_text(&reply, text, sizeof(text));
    if (reply.reply_type != AMQP_RESPONSE_SERVER_EXCEPTION ||
        reply.reply.id != AMQP_CHANNEL_CLOSE_METHOD)
        return err_set(err, ERR_BROKER_AWAY, "declaring %s: %s", name, why);
    log_event(LOG_WARN, "bus.topology.mismatch", LOG_S("name", name), LOG_S("reason", why));
    amqp_channel_close_ok_t close_ok = {0};
    int status = amqp_send_method(amqp, channel, AMQP_CHANNEL_CLOSE_OK_METHOD, &close_ok);
    if (status != AMQP_STATUS_OK || !amqp_channel_open(amqp, channel))
        return err_set(err, ERR_BROKER_AWAY, "declaring %s: %s", name, why);
    return ERR_OK;
}

static enum err_code declare_exchange(amqp_connection_state_t amqp, amqp_channel_t channel,
                                      enum bus_exchange exchange, struct err *err)
{
    const struct topology_exchange *row = &exchange_table[exchange];
    struct topology_args args;
    topology_exchange_args(exchange, &args);
    (void)amqp_exchange_declare(amqp, channel, amqp_cstring_bytes(row->name),
                                amqp_cstring_bytes(row->type), false, true, false, false,
                                args.table);
    return check_answer(amqp, channel, row->name, err);
}

static enum err_code declare_queue(amqp_connection_state_t amqp, amqp_channel_t channel,
                                   enum bus_queue_kind kind, struct err *err)
{
    const struct topology_queue *row = &queue_table[kind];
    const struct topology_choice choice = {.type = row->type};
    struct topology_args args;
    topology_queue_args(kind, &choice, &args);
    (void)amqp_queue_declare(amqp, channel, amqp_cstring_bytes(row->name), false, true, false,
                             false, args.table);
    enum err_code rc = check_answer(amqp, channel, row->name, err);
    if (rc)
        return rc;
    (void)amqp_queue_bind(amqp, channel, amqp_cstring_bytes(row->name),
                          amqp_cstring_bytes(exchange_table[row->exchange].name), amqp_empty_bytes,
                          amqp_empty_table);
    return check_answer(amqp, channel, row->name, err);
}

enum err_code topology_declare(amqp_connection_state_t amqp, amqp_channel_t channel,
                               struct err *err)
{
    enum err_code rc = ERR_OK;
    if (!amqp_channel_open(amqp, channel))
        return err_set(err, ERR_BROKER_AWAY, "the broker opens no channel");
    for (int i = 0; i < BUS_EXCHANGE_COUNT && !rc; i++) {
        if (i != BUS_DEFER)
            rc = declare_exchange(amqp, channel, (enum bus_exchange)i, err);
    }
    for (int i = 0; i < BUS_QUEUE_KIND_COUNT && !rc; i++) {
        if (queue_table[i].name[0])
            rc = declare_queue(amqp, channel, (enum bus_queue_kind)i, err);
    }
    if (rc)
        return rc;
    amqp_rpc_reply_t reply = amqp_channel_close(amqp, channel, AMQP_REPLY_SUCCESS);
    if (reply.reply_type != AMQP_RESPONSE_NORMAL)
        return err_set(err, ERR_BROKER_AWAY, "the broker closes no channel");
    amqp_maybe_release_buffers(amqp);
    return ERR_OK;
}
