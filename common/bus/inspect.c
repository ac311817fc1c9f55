/* SPDX-License-Identifier: MIT */
#include "common/bus/inspect.h"

#include "common/bus/dial.h"
#include "common/bus/secure.h"
#include "common/bus/topology.h"

#include <amqp_framing.h>
#include <amqp_tcp_socket.h>
#include <stdio.h>

#define CHANNEL_LOOK 1  /* the broker closes it with each refusal */
#define CHANNEL_PROBE 2 /* own queues and messages */
#define FRAME_MAX 131072
#define TEXT_SIZE 256
#define BRIEF_MS "1000"
#define NOT_FOUND 404

struct bus_inspector {
    struct bus_config cfg;
    amqp_connection_state_t amqp;
    char version[64];
};

static struct timeval patience(const struct bus_inspector *inspector)
{
    int ms = inspector->cfg.connect_timeout_ms;
    return (struct timeval){.tv_sec = ms / 1000, .tv_usec = (ms % 1000) * 1000};
}

static enum err_code away(const char *what, const amqp_rpc_reply_t *reply, struct err *err)
{
    char text[TEXT_SIZE];
    return err_set(err, ERR_BROKER_AWAY, "%s: %s", what,
                   topology_reply_text(reply, text, sizeof(text)));
}

/* ---- the connection ------------------------------------------------------------------------- */

void bus_inspector_free(struct bus_inspector *inspector)
{
    if (!inspector)
        return;
    if (inspector->amqp)
        (void)amqp_destroy_connection(inspector->amqp);
    free(inspector);
}

static void read_version(struct bus_inspector *inspector)
{
    const amqp_table_t *table = amqp_get_server_properties(inspector->amqp);
    for (int i = 0; table && i < table->num_entries; i++) {
        const amqp_table_entry_t *entry = &table->entries[i];
        struct sv key = {entry->key.bytes, entry->key.len};
        if (sv_is(key, "version") && entry->value.kind == AMQP_FIELD_KIND_UTF8)
            (void)snprintf(inspector->version, sizeof(inspector->version), "%.*s",
                           (int)entry->value.value.bytes.len,
                           (const char *)entry->value.value.bytes.bytes);
    }
}

static enum err_code reach(struct bus_inspector *inspector, struct err *err)
{
    const struct bus_config *cfg = &inspector->cfg;
    struct host node;
    if (!hosts_at(cfg->host, 0, cfg->port, &node))
        return err_set(err, ERR_CONFIG, "amqp.host = %s is no list of hosts", cfg->host);
    if (secure_is_wanted(cfg))
        return secure_open(cfg, &node, inspector->amqp, err);
    amqp_socket_t *socket = amqp_tcp_socket_new(inspector->amqp);
    if (!socket)
        return err_set(err, ERR_NOMEM, "no memory for a broker connection");
    atomic_bool never = false;
    int fd = -1;
    const struct dial dial = {.host = node.name,
                              .port = node.port,
                              .timeout_ms = cfg->connect_timeout_ms,
                              .user_timeout_ms = cfg->connect_timeout_ms,
                              .wake_fd = -1,
                              .stop = &never};
    enum err_code rc = dial_tcp(&dial, &fd, err);
    if (rc == ERR_OK)
        amqp_tcp_socket_set_sockfd(socket, fd);
    return rc;
}

static enum err_code log_in(struct bus_inspector *inspector, struct err *err)
{
    const struct bus_config *cfg = &inspector->cfg;
    struct timeval wait = patience(inspector);
    if (amqp_set_handshake_timeout(inspector->amqp, &wait) != AMQP_STATUS_OK ||
        amqp_set_rpc_timeout(inspector->amqp, &wait) != AMQP_STATUS_OK)
        return err_set(err, ERR_NOMEM, "no memory for a broker connection");
    enum err_code rc = reach(inspector, err);
    if (rc)
        return rc;
    /* Only who says that it understands it is told that the broker reads no messages. */
    amqp_table_entry_t blocked = {.key = amqp_cstring_bytes("connection.blocked"),
                                  .value = {.kind = AMQP_FIELD_KIND_BOOLEAN}};
    amqp_table_entry_t can = {.key = amqp_cstring_bytes("capabilities"),
                              .value = {.kind = AMQP_FIELD_KIND_TABLE}};
    blocked.value.value.boolean = true;
    can.value.value.table = (amqp_table_t){1, &blocked};
    const amqp_table_t properties = {1, &can};
    amqp_rpc_reply_t reply =
        amqp_login_with_properties(inspector->amqp, cfg->vhost, 0, FRAME_MAX, 0, &properties,
                                   AMQP_SASL_METHOD_PLAIN, cfg->user, cfg->password);
    if (reply.reply_type == AMQP_RESPONSE_NORMAL)
        return ERR_OK;
    char what[TEXT_SIZE];
    (void)snprintf(what, sizeof(what), "login of %s to vhost %s", cfg->user, cfg->vhost);
    return away(what, &reply, err);
}

static enum err_code open_channels(struct bus_inspector *inspector, struct err *err)
{
    if (amqp_channel_open(inspector->amqp, CHANNEL_LOOK) &&
        amqp_channel_open(inspector->amqp, CHANNEL_PROBE) &&
        amqp_confirm_select(inspector->amqp, CHANNEL_PROBE))
        return ERR_OK;
    amqp_rpc_reply_t reply = amqp_get_rpc_reply(inspector->amqp);
    return away("opening a channel", &reply, err);
}

enum err_code bus_inspector_open(const struct bus_config *cfg, struct bus_inspector **ret_inspector,
                                 struct err *err)
{
    AUTO(bus_inspector_free) struct bus_inspector *inspector = calloc(1, sizeof(*inspector));
    if (inspector)
        inspector->amqp = amqp_new_connection();
    if (!inspector || !inspector->amqp)
        return err_set(err, ERR_NOMEM, "no memory for a broker connection");
    inspector->cfg = *cfg;
    enum err_code rc = log_in(inspector, err);
    if (rc == ERR_OK)
        rc = open_channels(inspector, err);
    if (rc)
        return rc;
    read_version(inspector);
    *ret_inspector = TAKE(inspector);
    return ERR_OK;
}

const char *bus_inspector_version(const struct bus_inspector *inspector)
{
    return inspector->version;
}

/* ---- looks ---------------------------------------------------------------------------------- */

/* After an answer: what it says, with the channel opened again if the broker has closed it. */
static enum err_code read_answer(struct bus_inspector *inspector, const char *name,
                                 struct bus_looked *looked, struct err *err)
{
    amqp_rpc_reply_t reply = amqp_get_rpc_reply(inspector->amqp);
    looked->look = BUS_LOOK_SAME;
    if (reply.reply_type == AMQP_RESPONSE_NORMAL)
        return ERR_OK;
    if (reply.reply_type != AMQP_RESPONSE_SERVER_EXCEPTION ||
        reply.reply.id != AMQP_CHANNEL_CLOSE_METHOD)
        return away(name, &reply, err);
    const amqp_channel_close_t *close = reply.reply.decoded;
    looked->look = close->reply_code == NOT_FOUND ? BUS_LOOK_MISSING : BUS_LOOK_OTHER;
    (void)topology_reply_text(&reply, looked->text, sizeof(looked->text));
    amqp_channel_close_ok_t close_ok = {0};
    int status =
        amqp_send_method(inspector->amqp, CHANNEL_LOOK, AMQP_CHANNEL_CLOSE_OK_METHOD, &close_ok);
    if (status != AMQP_STATUS_OK || !amqp_channel_open(inspector->amqp, CHANNEL_LOOK))
        return err_set(err, ERR_BROKER_AWAY, "%s: the broker opens no channel", name);
    return ERR_OK;
}

static void declare_exchange(struct bus_inspector *inspector, enum bus_exchange exchange,
                             bool passive)
{
    const struct topology_exchange *row = topology_exchange(exchange);
    struct topology_args args;
    topology_exchange_args(exchange, &args);
    (void)amqp_exchange_declare(inspector->amqp, CHANNEL_LOOK, amqp_cstring_bytes(row->name),
                                amqp_cstring_bytes(row->type), passive, true, false, false,
                                args.table);
}

/* The same declaration of what is there changes nothing, and is refused if that differs. */
enum err_code bus_inspect_exchange(struct bus_inspector *inspector, enum bus_exchange exchange,
                                   struct bus_looked *ret_looked, struct err *err)
{
    const char *name = topology_exchange(exchange)->name;
    struct bus_looked looked = {0};
    declare_exchange(inspector, exchange, true);
    enum err_code rc = read_answer(inspector, name, &looked, err);
    if (rc == ERR_OK && looked.look == BUS_LOOK_SAME) {
        declare_exchange(inspector, exchange, false);
        rc = read_answer(inspector, name, &looked, err);
    }
    if (rc == ERR_OK)
        *ret_looked = looked;
    return rc;
}

enum err_code bus_inspect_queue(struct bus_inspector *inspector, enum bus_queue_kind kind,
                                const char *name, enum bus_queue_type type,
                                struct bus_looked *ret_looked, struct err *err)
{
    const struct topology_choice choice = {.type = type,
                                           .delivery_limit = inspector->cfg.delivery_limit};
    struct topology_args args;
    struct bus_looked looked = {0};
    const amqp_queue_declare_ok_t *found =
        amqp_queue_declare(inspector->amqp, CHANNEL_LOOK, amqp_cstring_bytes(name), true, true,
                           false, false, amqp_empty_table);
    if (found) {
        looked.messages = found->message_count;
        looked.consumers = found->consumer_count;
    }
    enum err_code rc = read_answer(inspector, name, &looked, err);
    if (rc == ERR_OK && looked.look == BUS_LOOK_SAME) {
        topology_queue_args(kind, &choice, &args);
        (void)amqp_queue_declare(inspector->amqp, CHANNEL_LOOK, amqp_cstring_bytes(name), false,
                                 true, false, false, args.table);
        rc = read_answer(inspector, name, &looked, err);
    }
    if (rc == ERR_OK)
        *ret_looked = looked;
    return rc;
}

/* ---- probes --------------------------------------------------------------------------------- */

enum err_code bus_inspect_own_queue(struct bus_inspector *inspector, const char *name,
                                    enum bus_exchange exchange, bool keeps_dead, struct err *err)
{
    amqp_table_entry_t entry = {.key = amqp_cstring_bytes("x-dead-letter-exchange")};
    entry.value.kind = AMQP_FIELD_KIND_UTF8;
    entry.value.value.bytes = amqp_cstring_bytes(bus_exchange_name(BUS_DEAD));
    const amqp_table_t args = {keeps_dead ? 1 : 0, &entry};
    const amqp_bytes_t queue = amqp_cstring_bytes(name);
    if (amqp_queue_declare(inspector->amqp, CHANNEL_PROBE, queue, false, false, true, true, args) &&
        amqp_queue_bind(inspector->amqp, CHANNEL_PROBE, queue,
                        amqp_cstring_bytes(bus_exchange_name(exchange)), queue, amqp_empty_table))
        return ERR_OK;
    amqp_rpc_reply_t reply = amqp_get_rpc_reply(inspector->amqp);
    return away(name, &reply, err);
}

/* A message that no queue wanted comes back before its confirmation. */
static enum err_code wait_confirm(struct bus_inspector *inspector, bool *ret_routed,
                                  struct err *err)
{
    bool routed = true;
    for (;;) {
        amqp_frame_t frame;
        struct timeval wait = patience(inspector);
        int status = amqp_simple_wait_frame_noblock(inspector->amqp, &frame, &wait);
        if (status != AMQP_STATUS_OK)
            return err_set(err, ERR_BROKER_AWAY, "a message was not confirmed: %s",
                           amqp_error_string2(status));
        if (frame.frame_type != AMQP_FRAME_METHOD)
            continue;
        if (frame.payload.method.id == AMQP_CONNECTION_BLOCKED_METHOD) {
            const amqp_connection_blocked_t *blocked = frame.payload.method.decoded;
            return err_set(err, ERR_BROKER_BLOCKED,
                           "the broker is short of memory or disk and takes no messages (it says: "
                           "%.*s)",
                           (int)(blocked->reason.len < 64 ? blocked->reason.len : 64),
                           (const char *)blocked->reason.bytes);
        }
        if (frame.payload.method.id == AMQP_BASIC_RETURN_METHOD)
            routed = false;
        else if (frame.payload.method.id == AMQP_BASIC_ACK_METHOD)
            break;
        else
            return err_set(err, ERR_BROKER_AWAY, "a message was refused by the broker");
    }
    *ret_routed = routed;
    return ERR_OK;
}

enum err_code bus_inspect_publish(struct bus_inspector *inspector, const struct bus_probe *probe,
                                  bool *ret_routed, struct err *err)
{
    amqp_basic_properties_t properties = {
        ._flags = AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG |
                  AMQP_BASIC_MESSAGE_ID_FLAG | (probe->brief ? AMQP_BASIC_EXPIRATION_FLAG : 0u),
        .content_type = amqp_cstring_bytes("application/json"),
        .delivery_mode = 2,
        .message_id = amqp_cstring_bytes(probe->message_id),
        .expiration = amqp_cstring_bytes(BRIEF_MS),
    };
    const amqp_bytes_t body = {probe->body.len, (void *)(uintptr_t)probe->body.ptr};
    int status = amqp_basic_publish(
        inspector->amqp, CHANNEL_PROBE, amqp_cstring_bytes(bus_exchange_name(probe->exchange)),
        amqp_cstring_bytes(probe->routing_key), true, false, &properties, body);
    if (status != AMQP_STATUS_OK)
        return err_set(err, ERR_BROKER_AWAY, "publishing to %s: %s",
                       bus_exchange_name(probe->exchange), amqp_error_string2(status));
    return wait_confirm(inspector, ret_routed, err);
}

enum err_code bus_inspect_take(struct bus_inspector *inspector, const char *queue, bool *ret_found,
                               struct err *err)
{
    amqp_message_t message;
    amqp_rpc_reply_t reply =
        amqp_basic_get(inspector->amqp, CHANNEL_PROBE, amqp_cstring_bytes(queue), false);
    if (reply.reply_type != AMQP_RESPONSE_NORMAL)
        return away(queue, &reply, err);
    bool found = reply.reply.id == AMQP_BASIC_GET_OK_METHOD;
    if (found) {
        uint64_t tag = ((const amqp_basic_get_ok_t *)reply.reply.decoded)->delivery_tag;
        reply = amqp_read_message(inspector->amqp, CHANNEL_PROBE, &message, 0);
        if (reply.reply_type != AMQP_RESPONSE_NORMAL)
            return away(queue, &reply, err);
        amqp_destroy_message(&message);
        if (amqp_basic_reject(inspector->amqp, CHANNEL_PROBE, tag, false) != AMQP_STATUS_OK)
            return err_set(err, ERR_BROKER_AWAY, "%s: rejecting a message", queue);
    }
    *ret_found = found;
    return ERR_OK;
}
