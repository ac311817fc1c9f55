/* SPDX-License-Identifier: MIT */
#include "common/config/config.h"
#include "tests/fuzz/fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

/* Input: a configuration file. What is taken is within its limits and can be shown. */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    AUTO(config_free) struct config *cfg = NULL;
    struct err err = {0};
    char name[] = "fuzz";
    char path[64];
    FD_AUTO int fd = memfd_create("config", MFD_CLOEXEC);
    MUST(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "--config=/proc/self/fd/%d", fd);
    char *words[] = {name, path, NULL};
    struct config_args args = {.argc = 2, .argv = words};
    if (config_load(&args, &cfg, &err) != ERR_OK) {
        MUST(err.text[0]);
        return 0;
    }
    MUST(cfg->db_port >= 1 && cfg->db_port <= 65535 && cfg->db_host[0]);
    TEXT_AUTO char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    MUST(out);
    config_show(cfg, out, true);
    MUST(fclose(out) == 0);
    if (cfg->db_password[0])
        MUST(strstr(text, "db.password = (set)"));
    return 0;
}
