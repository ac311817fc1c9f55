/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_TLS_H
#define WEBAPP_TLS_H

/* tls: the certificate that sluice-web shows, its key, and the CA of its clients' certificates.
 * They are files named by web.tls_*; a connection takes what is current when it begins and keeps
 * it to its end, so that a reload disturbs nobody. TLS 1.2 and 1.3 only.
 * Threads: locked. Memory: tls_free() frees; a set lives until its last holder puts it back. */

#include "common/config/config.h"

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <microhttpd.h>

#define TLS_PRIORITIES                                                                             \
    "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-KX-ALL:+ECDHE-ECDSA:+ECDHE-RSA:"                  \
    "-CIPHER-ALL:+AES-256-GCM:+CHACHA20-POLY1305:+AES-128-GCM:-MAC-ALL:+AEAD:%SERVER_PRECEDENCE"

struct tls;
struct tls_set;

/* NULL in ret_tls when the settings name no certificate. ERR_CONFIG tells the setting, the file
 * and why it cannot be used. */
MUST_USE enum err_code tls_open(const struct config *cfg, struct tls **ret_tls, struct err *err);
void tls_free(struct tls *tls); /* NULL is allowed; no set may be held */
/* Connections that begin from now on take what these settings name; on any fault the old set is
 * kept. */
MUST_USE enum err_code tls_reload(struct tls *tls, const struct config *cfg, struct err *err);
/* When the certificate ends, in seconds since 1970. */
int64_t tls_expires_s(struct tls *tls);

/* Has the new connection use what is current; NULL: it cannot, and its handshake will fail. */
struct tls_set *tls_begin(struct tls *tls, struct MHD_Connection *mhd);
void tls_put(struct tls *tls, struct tls_set *set); /* NULL is allowed */

/* For MHD, which asks for a certificate before connections have their own set: there is none. */
int tls_no_certificate(gnutls_session_t session, const gnutls_datum_t *names, int name_count,
                       const gnutls_pk_algorithm_t *algorithms, int algorithm_count,
                       gnutls_pcert_st **ret_chain, unsigned *ret_chain_length,
                       gnutls_privkey_t *ret_key);

#endif
