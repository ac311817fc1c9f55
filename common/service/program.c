/* SPDX-License-Identifier: MIT */
#include "common/service/program.h"

#include "common/base/log.h"

#include <unistd.h>

static void set_log_level(const struct config *cfg)
{
    enum log_level level = LOG_INFO;
    if (log_level_parse(sv_of(cfg->log_level), &level))
        log_set_level(level);
}

int program_refuse(const struct program *program, const struct err *err)
{
    (void)fprintf(stderr, "%s: %s\n", program->name, err->text);
    return PROGRAM_USAGE;
}

bool program_begin(struct program *program, int *ret_status)
{
    struct config_flag flags[] = {
        {.name = "help", .letter = 'h', .doc = "say this"},
        {.name = "version", .doc = "say the version"},
        {.name = NULL},
    };
    struct config_args args = {.argc = program->argc, .argv = program->argv, .flags = flags};
    AUTO(config_free) struct config *cfg = NULL;
    struct err err = {0};
    log_open(program->name, STDOUT_FILENO, LOG_INFO);
    enum err_code rc = config_load(&args, &cfg, &err);
    *ret_status = 0;
    if (flags[0].count > 0) {
        (void)printf("usage: %s [flags]\n\n", program->name);
        config_usage(stdout, flags);
        return false;
    }
    if (flags[1].count > 0) {
        (void)printf("%s %s\n", program->name, SLUICE_VERSION);
        return false;
    }
    if (rc == ERR_OK && args.rest < program->argc)
        rc = err_set(&err, ERR_INVALID, "unexpected argument %.100s", program->argv[args.rest]);
    if (rc) {
        *ret_status = program_refuse(program, &err);
        return false;
    }
    set_log_level(cfg);
    program->cfg = TAKE(cfg);
    return true;
}

void program_reload(void *arg)
{
    const struct program *program = arg;
    AUTO(config_free) struct config *fresh = NULL;
    struct config_args args = {.argc = program->argc, .argv = program->argv};
    struct err err = {0};
    if (config_load(&args, &fresh, &err) == ERR_OK)
        set_log_level(fresh);
    else
        log_err("config.reload.refused", &err);
}
