/* SPDX-License-Identifier: MIT */
#include "common/service/servers.h"

struct store_config servers_store(const struct config *cfg)
{
    return (struct store_config){
        .host = cfg->db_host,
        .user = cfg->db_user,
        .password = cfg->db_password,
        .name = cfg->db_name,
        .tls_ca = cfg->db_tls_ca,
        .port = (uint16_t)cfg->db_port,
        .pool_size = cfg->db_pool_size,
        .connect_timeout_ms = cfg->db_connect_timeout_ms,
        .query_timeout_ms = cfg->db_query_timeout_ms,
        .acquire_timeout_ms = SERVERS_ACQUIRE_MS,
    };
}

struct bus_config servers_bus(const struct config *cfg, const char *name)
{
    return (struct bus_config){
        .host = cfg->amqp_host,
        .user = cfg->amqp_user,
        .password = cfg->amqp_password,
        .vhost = cfg->amqp_vhost,
        .name = name,
        .tls_ca = cfg->amqp_tls_ca,
        .tls_cert = cfg->amqp_tls_cert,
        .tls_key = cfg->amqp_tls_key,
        .port = (int)cfg->amqp_port,
        .heartbeat_s = (int)cfg->amqp_heartbeat_s,
        .connect_timeout_ms = (int)cfg->amqp_connect_timeout_ms,
        .confirm_timeout_ms = (int)cfg->amqp_confirm_timeout_ms,
        .in_flight_max = cfg->amqp_in_flight_max,
        .delivery_limit = cfg->amqp_delivery_limit,
    };
}
