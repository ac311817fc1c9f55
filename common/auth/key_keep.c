/* SPDX-License-Identifier: MIT */
/* Whether the file of a key is as it was. */
#include "common/auth/key_scan_internal.h"

#include "common/base/log.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

void key_mix(uint64_t *hash, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) /* FNV-1a */
        *hash = (*hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(1099511628211);
}

/* Changes whenever the file is written or replaced; 0: it is not to be seen. Needs no descriptor.
 */
uint64_t key_file_signature(int dir_fd, const char *path)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    struct stat st;
    if (fstatat(dir_fd, path, &st, 0) != 0)
        return 0;
    key_mix(&hash, &st.st_dev, sizeof(st.st_dev));
    key_mix(&hash, &st.st_ino, sizeof(st.st_ino));
    key_mix(&hash, &st.st_size, sizeof(st.st_size));
    key_mix(&hash, &st.st_mtim, sizeof(st.st_mtim));
    key_mix(&hash, &st.st_ctim, sizeof(st.st_ctim));
    return hash | 1;
}

uint64_t key_next_stamp(void)
{
    static atomic_uint_fast64_t stamps;
    return atomic_fetch_add(&stamps, 1) + 1;
}

static bool is_there(const struct auth_config *cfg, const struct tenant_keys *tenant, size_t index)
{
    char path[PATH_MAX];
    const struct auth_key *key = &tenant->keys[index];
    const char *suffix = key->alg == AUTH_HS256 ? ".hs256" : ".pem";
    int length = snprintf(path, sizeof(path), "%s/%s/%s%s", cfg->keys_dir, tenant->tenant,
                          key->in_jwks ? "jwks" : key->kid, key->in_jwks ? ".json" : suffix);
    return length > 0 && (size_t)length < sizeof(path) &&
           key_file_signature(AT_FDCWD, path) == tenant->files[index];
}

void key_drop_gone(const struct auth_config *cfg, struct tenant_keys *tenant)
{
    bool dropped = false;
    for (size_t i = 0; i < tenant->count; i++) {
        if (atomic_load(&tenant->gone[i]) || is_there(cfg, tenant, i))
            continue;
        atomic_store(&tenant->gone[i], true);
        dropped = true;
        log_event(LOG_WARN, "auth.key.dropped", LOG_S("tenant", tenant->tenant),
                  LOG_S("kid", tenant->keys[i].kid));
    }
    tenant->signature = 0; /* it is loaded anew when it can be */
    if (dropped)           /* tokens that were remembered are checked anew */
        atomic_store(&tenant->stamp, key_next_stamp());
}

void key_scan_drop(const struct auth_config *cfg, const struct key_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        key_drop_gone(cfg, set->tenants[i]);
}
