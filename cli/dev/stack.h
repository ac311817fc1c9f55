/* SPDX-License-Identifier: MIT */
#ifndef CLI_DEV_STACK_H
#define CLI_DEV_STACK_H

/* stack: all that `sluice dev` runs, in one state folder:
 *   dev.lock       held while a supervisor lives
 *   dev.json       its pid, ready or not, pids and ports of every process
 *   profile.json   address, token, tenant
 *   sluice.conf    settings for the commands that talk to the servers (SLUICE_CONFIG)
 *   mariadb/ rabbitmq/ keys/ private/ work/ archive/ log/ secrets/
 * Threads: owner. */

#include "cli/cli.h"
#include "cli/dev/child.h"

enum stack_child {
    CHILD_EPMD,
    CHILD_MARIADB,
    CHILD_RABBITMQ,
    CHILD_WEB,
    CHILD_WORKER_DEFAULT,
    CHILD_WORKER_QUICK,
    CHILD_WORKER_LONG,
    CHILD_RECOVERY,
    CHILD_ALTERNATE,
    CHILD_DEADLETTER,
    CHILD_WEBHOOK,
    CHILD_COUNT
};

#define DEV_TENANT "demo"
#define DEV_KID "dev"
#define STACK_PATH_SIZE 512
#define STACK_SECRET_SIZE 33 /* 32 hex digits and NUL */
#define STACK_ACCOUNTS 5     /* of the database, beside the one that owns the schema */

struct stack {
    char state[STACK_PATH_SIZE]; /* absolute */
    char bin[STACK_PATH_SIZE];   /* folder of our programs */
    int state_dir;
    int log_dir;
    uint16_t dist_port;                  /* of the broker's Erlang node */
    char db_password[STACK_SECRET_SIZE]; /* of the account that owns the schema */
    char db_passwords[STACK_ACCOUNTS][STACK_SECRET_SIZE];
    char amqp_password[STACK_SECRET_SIZE];
    char cookie[STACK_SECRET_SIZE];
    struct child children[CHILD_COUNT];
    char url[64];
    const char *token; /* for setting the queues up */
    /* Told as it goes; NULL: nobody listens. */
    void (*progress)(const char *text);
};

/* "web" for sluice_web and its password in secrets/db_web; NULL behind the last one. */
extern const char *const stack_accounts[STACK_ACCOUNTS + 1];

/* Folders, secrets (made once), ports (kept if they are free). */
MUST_USE enum err_code stack_prepare(struct stack *stack, struct err *err);
/* MariaDB and RabbitMQ, both at once; returns when both answer. */
MUST_USE enum err_code stack_start_servers(struct stack *stack, struct err *err);
/* One of these servers, after it ended; does not wait until it answers. */
MUST_USE enum err_code stack_start_server(struct stack *stack, enum stack_child which,
                                          struct err *err);
/* Jobs of a worker that is root run as nobody, who may not enter every folder (/root, say). */
bool stack_jobs_stay_root(const struct stack *stack);
/* Schema, settings, keys, token, profile. ret_token is to be freed. */
MUST_USE enum err_code stack_setup(struct stack *stack, char **ret_token, struct err *err);
/* One of our own programs; also after it ended. */
MUST_USE enum err_code stack_start_program(struct stack *stack, enum stack_child which,
                                           struct err *err);
MUST_USE enum err_code stack_start_programs(struct stack *stack, struct err *err);
/* Sample queues over REST; they stay as they are if they are there. */
MUST_USE enum err_code stack_make_queues(struct stack *stack, struct err *err);
MUST_USE enum err_code stack_write_status(const struct stack *stack, bool ready, struct err *err);
/* Ends everything, our programs first. */
void stack_stop(struct stack *stack);

#endif
