/* SPDX-License-Identifier: MIT */
#include "common/bus/secure.h"

#include "common/base/openssl.h"

#include <amqp_ssl_socket.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

bool secure_is_wanted(const struct bus_config *cfg)
{
    return cfg->tls_ca && *cfg->tls_ca;
}

/* By OpenSSL, since the library knows no certificates for an IP address. */
static bool check_name(amqp_socket_t *socket, const char *host)
{
    SSL_CTX *context = amqp_ssl_socket_get_context(socket);
    X509_VERIFY_PARAM *param = context ? SSL_CTX_get0_param(context) : NULL;
    if (!param)
        return false;
    amqp_ssl_socket_set_verify_hostname(socket, 0);
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1 ||
           X509_VERIFY_PARAM_set1_host(param, host, 0) == 1;
}

static enum err_code prepare(const struct bus_config *cfg, const struct host *node,
                             amqp_socket_t *socket, struct err *err)
{
    bool has_cert = cfg->tls_cert && *cfg->tls_cert;
    bool has_key = cfg->tls_key && *cfg->tls_key;
    amqp_ssl_socket_set_verify_peer(socket, 1);
    if (!check_name(socket, node->name))
        return err_set(err, ERR_NOMEM, "no memory for a broker connection");
    if (amqp_ssl_socket_set_ssl_versions(socket, AMQP_TLSv1_2, AMQP_TLSvLATEST) != AMQP_STATUS_OK)
        return err_set(err, ERR_BROKER_AWAY, "the library offers no TLS 1.2");
    if (amqp_ssl_socket_set_cacert(socket, cfg->tls_ca) != AMQP_STATUS_OK)
        return err_set(err, ERR_BROKER_AWAY,
                       "amqp.tls_ca = %s holds no CA certificate that we can read", cfg->tls_ca);
    if (has_cert != has_key)
        return err_set(err, ERR_BROKER_AWAY, "amqp.tls_cert and amqp.tls_key belong together");
    if (has_cert && amqp_ssl_socket_set_key(socket, cfg->tls_cert, cfg->tls_key) != AMQP_STATUS_OK)
        return err_set(err, ERR_BROKER_AWAY, "amqp.tls_cert = %s and amqp.tls_key do not match",
                       cfg->tls_cert);
    return ERR_OK;
}

/* What the library keeps to itself is in the thread's queue of errors. */
static enum err_code refused(const struct host *node, int status, struct err *err)
{
    unsigned long fault = ERR_peek_error();
    const char *reason = fault ? ERR_reason_error_string(fault) : NULL;
    const char *cure = "";
    if (status == AMQP_STATUS_SSL_PEER_VERIFY_FAILED ||
        (reason && strstr(reason, "certificate verify failed")))
        cure = "; amqp.tls_ca must hold the CA of its certificate, which must name this host and "
               "not have expired";
    else if (reason && strstr(reason, "wrong version"))
        cure = "; it speaks no TLS there: amqp.port is 5671 as a rule";
    ERR_clear_error();
    return err_set(err, ERR_BROKER_AWAY, "broker at %s port %d: %s%s", node->name, node->port,
                   reason ? reason : amqp_error_string2(status), cure);
}

enum err_code secure_open(const struct bus_config *cfg, const struct host *node,
                          amqp_connection_state_t amqp, struct err *err)
{
    const struct timeval wait = {.tv_sec = cfg->connect_timeout_ms / 1000,
                                 .tv_usec = (cfg->connect_timeout_ms % 1000) * 1000};
    amqp_socket_t *socket = amqp_ssl_socket_new(amqp);
    if (!socket)
        return err_set(err, ERR_NOMEM, "no memory for a broker connection");
    ERR_clear_error();
    enum err_code rc = prepare(cfg, node, socket, err);
    if (rc)
        return rc;
    int status = amqp_socket_open_noblock(socket, node->name, node->port, &wait);
    return status == AMQP_STATUS_OK ? ERR_OK : refused(node, status, err);
}
