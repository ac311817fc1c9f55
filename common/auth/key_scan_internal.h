/* SPDX-License-Identifier: MIT */
#ifndef COMMON_AUTH_KEY_SCAN_INTERNAL_H
#define COMMON_AUTH_KEY_SCAN_INTERNAL_H

/* key_scan_internal: what the files of key_scan share.
 * Threads: any; a tenant's signature is that of the thread that scans. Memory: none. */

#include "common/auth/key_store.h"

void key_mix(uint64_t *hash, const void *bytes, size_t size); /* FNV-1a */
/* Changes whenever the file is written or replaced; 0: it is not to be seen. Needs no descriptor.
 */
uint64_t key_file_signature(int dir_fd, const char *path);
uint64_t key_next_stamp(void);
/* Forgets the keys whose files are not seen to be as they were. Without memory and without a
 * descriptor: want of them must not keep a key that was removed. */
void key_drop_gone(const struct auth_config *cfg, struct tenant_keys *tenant);

#endif
