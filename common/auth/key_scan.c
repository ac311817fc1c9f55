/* SPDX-License-Identifier: MIT */
#include "common/auth/key_scan_internal.h"

#include "common/base/buf.h"
#include "common/base/fs.h"
#include "common/base/log.h"
#include "common/base/openssl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define TENANTS_MAX 10000
#define FILES_MAX 128 /* in one tenant's folder */
#define FILE_NAME_SIZE 256
#define FILE_BYTES_MAX (256 * 1024)

struct listing { /* the key files of one folder, sorted */
    size_t count;
    char names[FILES_MAX][FILE_NAME_SIZE];
};

static void dir_close(DIR **dir)
{
    if (*dir)
        closedir(*dir);
}
#define DIR_AUTO __attribute__((cleanup(dir_close)))

static enum err_code dir_open(int at_fd, const char *name, DIR **ret_dir, struct err *err)
{
    FD_AUTO int fd = -1;
    enum err_code rc = fs_open_beneath(at_fd, name, O_RDONLY | O_DIRECTORY, 0, &fd, err);
    if (rc)
        return rc;
    DIR *dir = fdopendir(fd);
    if (!dir)
        return err_set_errno(err, ERR_IO, errno, "cannot list %s", name);
    fd = -1; /* the stream closes it */
    *ret_dir = dir;
    return ERR_OK;
}

static bool ends_with(const char *name, const char *suffix)
{
    size_t length = strlen(name);
    size_t tail = strlen(suffix);
    return length > tail && strcmp(name + length - tail, suffix) == 0;
}

static bool is_key_file(const char *name)
{
    return name[0] != '.' &&
           (ends_with(name, ".pem") || ends_with(name, ".hs256") || strcmp(name, "jwks.json") == 0);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static enum err_code list_files(DIR *dir, struct listing *ret_files, struct err *err)
{
    ret_files->count = 0;
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir); /* NOLINT(concurrency-mt-unsafe) */
        if (!entry && errno)
            return err_set_errno(err, ERR_IO, errno, "cannot list a folder of keys");
        if (!entry)
            break;
        if (!is_key_file(entry->d_name))
            continue;
        if (ret_files->count == FILES_MAX)
            return err_set(err, ERR_CONFIG, "more than %d key files in one folder", FILES_MAX);
        snprintf(ret_files->names[ret_files->count++], FILE_NAME_SIZE, "%s", entry->d_name);
    }
    qsort(ret_files->names, ret_files->count, FILE_NAME_SIZE, by_name);
    return ERR_OK;
}

/* Changes whenever a file comes, goes or is written. */
static uint64_t signature_of(int dir_fd, const struct listing *files)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < files->count; i++) {
        uint64_t signature = key_file_signature(dir_fd, files->names[i]);
        key_mix(&hash, files->names[i], strlen(files->names[i]) + 1);
        key_mix(&hash, &signature, sizeof(signature));
    }
    return hash | 1;
}

static void note_refused(const char *tenant, const char *file, const struct err *err)
{
    log_event(LOG_WARN, "auth.key.refused", LOG_S("tenant", tenant), LOG_S("file", file),
              LOG_S("reason", err->text));
}

static uint64_t id_of(const struct auth_key *key)
{
    unsigned char digest[EVP_MAX_MD_SIZE] = {0};
    uint64_t id = 0;
    (void)EVP_Digest(key->bytes, key->size, digest, NULL, EVP_sha256(), NULL);
    memcpy(&id, digest, sizeof(id));
    key_mix(&id, key->kid, strlen(key->kid));
    return id;
}

struct source { /* a file that is read */
    const char *file;
    uint64_t signature; /* before it was */
};

/* Takes the key over; a kid that is there already stays what it was. */
static void add_key(struct tenant_keys *tenant, const struct source *source, struct auth_key *key)
{
    const char *file = source->file;
    struct err err = {0};
    for (size_t i = 0; i < tenant->count && !err.code; i++)
        if (strcmp(tenant->keys[i].kid, key->kid) == 0)
            (void)err_set(&err, ERR_CONFIG, "kid %s is defined twice", key->kid);
    if (!err.code && tenant->count == TENANT_KEYS_MAX)
        (void)err_set(&err, ERR_CONFIG, "a tenant has at most %d keys", TENANT_KEYS_MAX);
    if (err.code) {
        note_refused(tenant->tenant, file, &err);
        auth_key_clear(key);
        return;
    }
    key->id = id_of(key);
    key->in_jwks = strcmp(file, "jwks.json") == 0;
    tenant->files[tenant->count] = source->signature;
    tenant->keys[tenant->count++] = *key;
}

static enum err_code load_jwks(struct tenant_keys *tenant, const struct source *source,
                               struct sv text, struct err *err)
{
    JSON_AUTO json_t *root = json_loadb(text.ptr, text.len, JSON_REJECT_DUPLICATES, NULL);
    const json_t *list = json_object_get(root, "keys");
    if (!json_is_array(list))
        return err_set(err, ERR_CONFIG, "it is not a JWKS: an object with an array \"keys\"");
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct err fault = {0};
        struct auth_key key = {0};
        if (auth_key_from_jwk(json_array_get(list, i), &key, &fault) == ERR_OK)
            add_key(tenant, source, &key);
        else
            note_refused(tenant->tenant, source->file, &fault);
    }
    return ERR_OK;
}

static enum err_code load_single(struct tenant_keys *tenant, const struct source *source,
                                 struct sv bytes, struct err *err)
{
    const char *file = source->file;
    struct auth_key key = {0};
    bool secret = ends_with(file, ".hs256");
    size_t length = strlen(file) - strlen(secret ? ".hs256" : ".pem");
    if (!sv_copy((struct sv){file, length}, key.kid, sizeof(key.kid)))
        return err_set(err, ERR_CONFIG, "a kid has at most %d bytes", AUTH_KID_SIZE - 1);
    enum err_code rc =
        secret ? auth_key_from_secret(bytes, &key, err) : auth_key_from_pem(bytes, &key, err);
    if (rc)
        auth_key_clear(&key);
    else
        add_key(tenant, source, &key);
    return rc;
}

/* A secret that others may read is none; a folder that others may write is no fault of the file. */
static enum err_code check_secret(int dir_fd, const char *file, const struct auth_config *cfg,
                                  struct err *err)
{
    struct stat st;
    if (!cfg->allow_hs256)
        return err_set(err, ERR_CONFIG, "shared secrets are not allowed (auth.allow_hs256)");
    if (fstatat(dir_fd, file, &st, 0) != 0)
        return err_set_errno(err, ERR_IO, errno, "cannot look at the file");
    if (st.st_mode & (S_IRWXO | S_IWGRP))
        return err_set(err, ERR_CONFIG,
                       "mode %04o lets others read or write a secret; 0600 or 0640 is needed",
                       st.st_mode & 07777);
    return ERR_OK;
}

static enum err_code load_file(const struct auth_config *cfg, int dir_fd,
                               struct tenant_keys *tenant, const char *file, struct err *err)
{
    BUF_AUTO struct buf bytes = BUF_INIT(FILE_BYTES_MAX);
    const struct source source = {file, key_file_signature(dir_fd, file)};
    enum err_code rc = ends_with(file, ".hs256") ? check_secret(dir_fd, file, cfg, err) : ERR_OK;
    if (!rc)
        rc = fs_read(dir_fd, file, &bytes, err);
    if (!rc && strcmp(file, "jwks.json") == 0)
        rc = load_jwks(tenant, &source, buf_sv(&bytes), err);
    else if (!rc)
        rc = load_single(tenant, &source, buf_sv(&bytes), err);
    if (bytes.ptr)
        explicit_bzero(bytes.ptr, bytes.len);
    return rc;
}

static enum err_code load_tenant(const struct auth_config *cfg, int dir_fd,
                                 const struct listing *files, struct tenant_keys *tenant,
                                 struct err *err)
{
    for (size_t i = 0; i < files->count; i++) {
        struct err fault = {0};
        enum err_code rc = load_file(cfg, dir_fd, tenant, files->names[i], &fault);
        /* A process short of memory or descriptors must not lose keys over it. */
        if (rc == ERR_NOMEM || (rc == ERR_IO && fault.sys_errno != EACCES))
            return err_set(err, rc, "%s: %s", files->names[i], fault.text);
        if (rc)
            note_refused(tenant->tenant, files->names[i], &fault);
    }
    log_event(LOG_INFO, "auth.keys.loaded", LOG_S("tenant", tenant->tenant),
              LOG_U("keys", tenant->count));
    return ERR_OK;
}

static struct tenant_keys *new_tenant(const char *name, uint64_t signature)
{
    struct tenant_keys *tenant = calloc(1, sizeof(*tenant));
    if (!tenant)
        return NULL;
    atomic_init(&tenant->refs, 1);
    tenant->signature = signature;
    atomic_init(&tenant->stamp, key_next_stamp());
    snprintf(tenant->tenant, sizeof(tenant->tenant), "%s", name);
    return tenant;
}

/* The tenant as it is now; shared with old if its folder did not change. */
static enum err_code scan_tenant(const struct auth_config *cfg, int root_fd, const char *name,
                                 struct tenant_keys *old, struct tenant_keys **ret_tenant,
                                 struct err *err)
{
    DIR_AUTO DIR *dir = NULL;
    struct listing files;
    enum err_code rc = dir_open(root_fd, name, &dir, err);
    if (!dir)
        return rc;
    rc = list_files(dir, &files, err);
    if (rc)
        return rc;
    uint64_t signature = signature_of(dirfd(dir), &files);
    if (old && old->signature == signature) {
        atomic_store(&old->unreadable, false);
        atomic_fetch_add(&old->refs, 1);
        *ret_tenant = old;
        return ERR_OK;
    }
    AUTO(tenant_keys_free) struct tenant_keys *tenant = new_tenant(name, signature);
    if (!tenant)
        return err_set(err, ERR_NOMEM, "out of memory for the keys of %s", name);
    rc = load_tenant(cfg, dirfd(dir), &files, tenant, err);
    if (rc)
        return rc;
    *ret_tenant = TAKE(tenant);
    return ERR_OK;
}

/* A folder that cannot be read: no new keys, logged once. */
static struct tenant_keys *keep_tenant(const struct auth_config *cfg, const char *name,
                                       struct tenant_keys *old, const struct err *fault)
{
    struct tenant_keys *kept = old ? old : new_tenant(name, 0);
    if (!kept)
        return NULL;
    if (old) {
        key_drop_gone(cfg, old);
        atomic_fetch_add(&old->refs, 1);
    }
    if (!atomic_exchange(&kept->unreadable, true))
        note_refused(name, "", fault);
    return kept;
}

static int by_tenant(const void *a, const void *b)
{
    const struct tenant_keys *const *left = a;
    const struct tenant_keys *const *right = b;
    return strcmp((*left)->tenant, (*right)->tenant);
}

static enum err_code set_add(struct key_set *set, struct tenant_keys *tenant, struct err *err)
{
    if (set->count % 64 == 0) {
        struct tenant_keys **more = realloc(set->tenants, (set->count + 64) * sizeof(void *));
        if (!more)
            return err_set(err, ERR_NOMEM, "out of memory for the keys");
        set->tenants = more;
    }
    set->tenants[set->count++] = tenant;
    return ERR_OK;
}

static enum err_code scan_one(const struct auth_config *cfg, int root_fd, const char *name,
                              struct tenant_keys *old, struct key_set *set, struct err *err)
{
    AUTO(tenant_keys_free) struct tenant_keys *tenant = NULL;
    struct err fault = {0};
    enum err_code rc = scan_tenant(cfg, root_fd, name, old, &tenant, &fault);
    if (rc == ERR_NOT_FOUND) /* a plain file, or gone meanwhile */
        return ERR_OK;
    if (rc) {
        tenant = keep_tenant(cfg, name, old, &fault);
        set->refused++;
    }
    if (!tenant)
        return err_set(err, ERR_NOMEM, "out of memory for the keys of %s", name);
    rc = set_add(set, tenant, err);
    if (!rc)
        tenant = NULL;
    return rc;
}

/* Those who are known, so that no new one takes their place. */
static enum err_code scan_known(const struct auth_config *cfg, int root_fd,
                                const struct key_set *old, struct key_set *set, struct err *err)
{
    enum err_code rc = ERR_OK;
    for (size_t i = 0; rc == ERR_OK && i < old->count; i++)
        rc = scan_one(cfg, root_fd, old->tenants[i]->tenant, old->tenants[i], set, err);
    return rc;
}

static enum err_code scan_new(const struct auth_config *cfg, int root_fd, DIR *root,
                              const struct key_set *old, struct key_set *set, struct err *err)
{
    enum err_code rc = ERR_OK;
    while (!rc) {
        errno = 0;
        const struct dirent *entry = readdir(root); /* NOLINT(concurrency-mt-unsafe) */
        if (!entry && errno)
            return err_set_errno(err, ERR_IO, errno, "cannot list %s", cfg->keys_dir);
        if (!entry)
            break;
        struct sv name = sv_of(entry->d_name);
        if (!auth_tenant_is_valid(name) || key_set_find(old, name))
            continue;
        if (set->count < TENANTS_MAX)
            rc = scan_one(cfg, root_fd, entry->d_name, NULL, set, err);
        else
            set->refused++;
    }
    return rc;
}

enum err_code key_scan(const struct auth_config *cfg, const struct key_set *old,
                       struct key_set *ret_set, struct err *err)
{
    FD_AUTO int root_fd = -1;
    DIR_AUTO DIR *root = NULL;
    struct key_set set = {0};
    enum err_code rc = fs_open_dir(cfg->keys_dir, false, &root_fd, err);
    if (!rc)
        rc = dir_open(root_fd, ".", &root, err);
    if (!root)
        return rc;
    rc = scan_known(cfg, root_fd, old, &set, err);
    if (!rc)
        rc = scan_new(cfg, root_fd, root, old, &set, err);
    if (rc) {
        key_set_done(&set);
        return rc;
    }
    if (set.count > 0)
        qsort(set.tenants, set.count, sizeof(void *), by_tenant);
    *ret_set = set;
    return ERR_OK;
}
