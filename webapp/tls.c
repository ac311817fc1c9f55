/* SPDX-License-Identifier: MIT */
#include "webapp/tls.h"

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <gnutls/x509.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX ((size_t)1024 * 1024)
#define CHAIN_MAX 16u
#define DAY_S 86400
#define WARN_DAYS 14

struct tls_set {
    gnutls_certificate_credentials_t credentials;
    gnutls_certificate_request_t request; /* of the client's certificate */
    unsigned refs;                        /* the lock of tls */
    int64_t expires_s;
};

struct tls {
    pthread_mutex_t lock;
    struct tls_set *current; /* lock */
};

/* ---- files ----------------------------------------------------------------------------------- */

/* Into memory that file_done() wipes. */
static enum err_code file_read(const char *setting, const char *path, bool is_secret,
                               gnutls_datum_t *ret_bytes, struct err *err)
{
    struct stat about;
    FD_AUTO int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &about) != 0)
        return err_set(err, ERR_CONFIG, "%s = %s: %s", setting, path, strerrordesc_np(errno));
    if (!S_ISREG(about.st_mode) || (uint64_t)about.st_size > FILE_MAX)
        return err_set(err, ERR_CONFIG, "%s = %s is not a PEM file", setting, path);
    if (is_secret && (about.st_mode & S_IRWXO))
        return err_set(err, ERR_CONFIG,
                       "%s = %s: other users may read or write it (mode %04o); chmod 0640 or 0600",
                       setting, path, (unsigned)about.st_mode & 07777u);
    size_t size = (size_t)about.st_size;
    unsigned char *bytes = calloc(1, size + 1);
    ssize_t got = bytes ? pread(fd, bytes, size, 0) : -1;
    if (got < 0) {
        free(bytes);
        return err_set(err, ERR_CONFIG, "%s = %s cannot be read", setting, path);
    }
    *ret_bytes = (gnutls_datum_t){.data = bytes, .size = (unsigned)got};
    return ERR_OK;
}

static void file_done(gnutls_datum_t *bytes)
{
    if (bytes->data)
        explicit_bzero(bytes->data, bytes->size);
    free(bytes->data);
    bytes->data = NULL;
}

#define FILE_AUTO __attribute__((cleanup(file_done)))

/* ---- a set ----------------------------------------------------------------------------------- */

static void set_free(struct tls_set *set)
{
    if (!set)
        return;
    if (set->credentials)
        gnutls_certificate_free_credentials(set->credentials);
    free(set);
}

DEFINE_AUTO(struct tls_set *, set_free)

/* The end of the first certificate in the file, which is the server's own. */
static enum err_code check_times(struct tls_set *set, const char *path, const gnutls_datum_t *pem,
                                 struct err *err)
{
    gnutls_x509_crt_t chain[CHAIN_MAX];
    unsigned count = CHAIN_MAX;
    int rc = gnutls_x509_crt_list_import(chain, &count, pem, GNUTLS_X509_FMT_PEM, 0);
    if (rc < 0)
        return err_set(err, ERR_CONFIG, "web.tls_cert = %s: %s", path, gnutls_strerror(rc));
    set->expires_s = count > 0 ? gnutls_x509_crt_get_expiration_time(chain[0]) : 0;
    int64_t begins_s = count > 0 ? gnutls_x509_crt_get_activation_time(chain[0]) : 0;
    for (unsigned i = 0; i < count; i++)
        gnutls_x509_crt_deinit(chain[i]);
    int64_t left_s = set->expires_s - clock_wall_s();
    if (left_s <= 0)
        return err_set(err, ERR_CONFIG,
                       "web.tls_cert = %s: the certificate has expired %lld days ago; renew it",
                       path, (long long)(-left_s / DAY_S));
    if (begins_s > clock_wall_s())
        return err_set(err, ERR_CONFIG, "web.tls_cert = %s: the certificate is not valid yet",
                       path);
    log_event(left_s < (int64_t)WARN_DAYS * DAY_S ? LOG_WARN : LOG_INFO, "tls.certificate",
              LOG_S("file", path), LOG_I("days_left", left_s / DAY_S));
    return ERR_OK;
}

static enum err_code take_certificate(struct tls_set *set, const struct config *cfg,
                                      struct err *err)
{
    FILE_AUTO gnutls_datum_t cert = {0};
    FILE_AUTO gnutls_datum_t key = {0};
    if (!*cfg->web_tls_key)
        return err_set(err, ERR_CONFIG, "web.tls_cert is set and web.tls_key is not");
    enum err_code rc = file_read("web.tls_cert", cfg->web_tls_cert, false, &cert, err);
    if (rc == ERR_OK)
        rc = file_read("web.tls_key", cfg->web_tls_key, true, &key, err);
    if (rc == ERR_OK)
        rc = check_times(set, cfg->web_tls_cert, &cert, err);
    if (rc)
        return rc;
    int failed =
        gnutls_certificate_set_x509_key_mem(set->credentials, &cert, &key, GNUTLS_X509_FMT_PEM);
    if (failed < 0)
        return err_set(err, ERR_CONFIG, "web.tls_cert = %s and web.tls_key = %s: %s",
                       cfg->web_tls_cert, cfg->web_tls_key, gnutls_strerror(failed));
    return ERR_OK;
}

/* The client's certificate must be one for clients and come from our CA. Without one: the library
 * has refused him already where it is required. */
static int check_client(gnutls_session_t session)
{
    static char purpose[] = GNUTLS_KP_TLS_WWW_CLIENT;
    gnutls_typed_vdata_st wanted = {
        .type = GNUTLS_DT_KEY_PURPOSE_OID, .data = (unsigned char *)purpose, .size = 0};
    unsigned count = 0;
    unsigned status = 0;
    if (!gnutls_certificate_get_peers(session, &count) || count == 0)
        return 0;
    int rc = gnutls_certificate_verify_peers(session, &wanted, 1, &status);
    if (rc == 0 && status == 0)
        return 0;
    log_event(LOG_DEBUG, "tls.client.refused", LOG_U("status", status));
    return GNUTLS_E_CERTIFICATE_ERROR;
}

static enum err_code take_clients(struct tls_set *set, const struct config *cfg, struct err *err)
{
    FILE_AUTO gnutls_datum_t ca = {0};
    set->request = GNUTLS_CERT_IGNORE;
    if (strcmp(cfg->web_tls_client, "none") == 0)
        return ERR_OK;
    if (!*cfg->web_tls_client_ca)
        return err_set(err, ERR_CONFIG, "web.tls_client = %s needs web.tls_client_ca",
                       cfg->web_tls_client);
    enum err_code rc = file_read("web.tls_client_ca", cfg->web_tls_client_ca, false, &ca, err);
    if (rc)
        return rc;
    int count = gnutls_certificate_set_x509_trust_mem(set->credentials, &ca, GNUTLS_X509_FMT_PEM);
    if (count <= 0)
        return err_set(err, ERR_CONFIG, "web.tls_client_ca = %s: %s", cfg->web_tls_client_ca,
                       count < 0 ? gnutls_strerror(count) : "there is no certificate in it");
    gnutls_certificate_set_verify_function(set->credentials, check_client);
    set->request =
        strcmp(cfg->web_tls_client, "required") == 0 ? GNUTLS_CERT_REQUIRE : GNUTLS_CERT_REQUEST;
    return ERR_OK;
}

static enum err_code set_load(const struct config *cfg, struct tls_set **ret_set, struct err *err)
{
    AUTO(set_free) struct tls_set *set = calloc(1, sizeof(*set));
    if (!set || gnutls_certificate_allocate_credentials(&set->credentials) != 0)
        return err_set(err, ERR_NOMEM, "out of memory");
    set->refs = 1;
    enum err_code rc = take_certificate(set, cfg, err);
    if (rc == ERR_OK)
        rc = take_clients(set, cfg, err);
    if (rc)
        return rc;
    *ret_set = TAKE(set);
    return ERR_OK;
}

/* ---- calls ----------------------------------------------------------------------------------- */

enum err_code tls_open(const struct config *cfg, struct tls **ret_tls, struct err *err)
{
    if (!*cfg->web_tls_cert) {
        if (*cfg->web_tls_key || *cfg->web_tls_client_ca ||
            strcmp(cfg->web_tls_client, "none") != 0)
            return err_set(err, ERR_CONFIG,
                           "web.tls_key or web.tls_client is set and web.tls_cert is not");
        *ret_tls = NULL;
        return ERR_OK;
    }
    struct tls *tls = calloc(1, sizeof(*tls));
    if (!tls)
        return err_set(err, ERR_NOMEM, "out of memory");
    enum err_code rc = set_load(cfg, &tls->current, err);
    if (rc) {
        free(tls);
        return rc;
    }
    pthread_mutex_init(&tls->lock, NULL);
    *ret_tls = tls;
    return ERR_OK;
}

void tls_free(struct tls *tls)
{
    if (!tls)
        return;
    set_free(tls->current);
    pthread_mutex_destroy(&tls->lock);
    free(tls);
}

enum err_code tls_reload(struct tls *tls, const struct config *cfg, struct err *err)
{
    struct tls_set *fresh = NULL;
    if (!*cfg->web_tls_cert)
        return err_set(err, ERR_CONFIG, "web.tls_cert is gone: TLS ends with a restart only");
    enum err_code rc = set_load(cfg, &fresh, err);
    if (rc)
        return rc;
    pthread_mutex_lock(&tls->lock);
    struct tls_set *old = tls->current;
    tls->current = fresh;
    pthread_mutex_unlock(&tls->lock);
    tls_put(tls, old);
    return ERR_OK;
}

int64_t tls_expires_s(struct tls *tls)
{
    pthread_mutex_lock(&tls->lock);
    int64_t expires_s = tls->current->expires_s;
    pthread_mutex_unlock(&tls->lock);
    return expires_s;
}

struct tls_set *tls_begin(struct tls *tls, struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    gnutls_session_t session = info ? info->tls_session : NULL;
    if (!session)
        return NULL;
    pthread_mutex_lock(&tls->lock);
    struct tls_set *set = tls->current;
    set->refs++;
    pthread_mutex_unlock(&tls->lock);
    if (gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, set->credentials) != 0) {
        tls_put(tls, set);
        return NULL;
    }
    gnutls_certificate_server_set_request(session, set->request);
    return set;
}

void tls_put(struct tls *tls, struct tls_set *set)
{
    if (!set)
        return;
    pthread_mutex_lock(&tls->lock);
    bool last = --set->refs == 0;
    pthread_mutex_unlock(&tls->lock);
    if (last)
        set_free(set);
}

/* NOLINTNEXTLINE(readability-function-size): the library decides */
int tls_no_certificate(gnutls_session_t session, const gnutls_datum_t *names, int name_count,
                       const gnutls_pk_algorithm_t *algorithms, int algorithm_count,
                       gnutls_pcert_st **ret_chain, unsigned *ret_chain_length,
                       gnutls_privkey_t *ret_key)
{
    (void)session;
    (void)names;
    (void)name_count;
    (void)algorithms;
    (void)algorithm_count;
    (void)ret_chain;
    (void)ret_chain_length;
    (void)ret_key;
    return -1;
}
