/* SPDX-License-Identifier: MIT */
#include "cli/admin_db.h"

struct store_config admin_db_config(const struct config *cfg)
{
    return (struct store_config){
        .host = cfg->db_host,
        .user = cfg->db_user,
        .password = cfg->db_password,
        .name = cfg->db_name,
        .tls_ca = cfg->db_tls_ca,
        .port = (uint16_t)cfg->db_port,
        .pool_size = 1,
        .connect_timeout_ms = cfg->db_connect_timeout_ms,
        .query_timeout_ms = cfg->db_query_timeout_ms,
        .acquire_timeout_ms = cfg->db_connect_timeout_ms,
    };
}
