/* SPDX-License-Identifier: MIT */
/* The private MariaDB and RabbitMQ. Both listen on 127.0.0.1 only, with passwords of their own. */

#include "cli/dev/stack.h"

#include "common/base/clock.h"
#include "common/base/fs.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SERVER_START_MS 120000
#define ARG_SIZE (STACK_PATH_SIZE + 128)

static const char *first_that_exists(const char *const *paths)
{
    for (; *paths; paths++) {
        if (access(*paths, X_OK) == 0)
            return *paths;
    }
    return NULL;
}

static enum err_code find_program(const char *const *paths, const char *package,
                                  const char **ret_path, struct err *err)
{
    *ret_path = first_that_exists(paths);
    if (*ret_path)
        return ERR_OK;
    return err_set(err, ERR_NOT_FOUND, "%s is not installed; install the package %s", paths[0],
                   package);
}

/* Statements that the server runs at every start: all of them may be repeated. */
static enum err_code write_init_file(const struct stack *stack, struct err *err)
{
    FD_AUTO int dir = -1;
    enum err_code rc = fs_make_dirs(stack->state_dir, "secrets", 0700, &dir, err);
    if (rc)
        return rc;
    BUF_AUTO struct buf sql = BUF_INIT(8192);
    /* Nobody is root over the network, nor anybody without a password. */
    buf_addf(&sql,
             "ALTER USER 'root'@'localhost' IDENTIFIED VIA unix_socket;\n"
             "DELETE FROM mysql.global_priv WHERE User = '' OR (User = 'root' AND Host <> "
             "'localhost');\n"
             "FLUSH PRIVILEGES;\n"
             "CREATE DATABASE IF NOT EXISTS sluice CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;\n"
             "CREATE USER IF NOT EXISTS 'sluice'@'127.0.0.1' IDENTIFIED BY '%s';\n"
             "GRANT ALL ON sluice.* TO 'sluice'@'127.0.0.1' WITH GRANT OPTION;\n"
             "DROP USER IF EXISTS 'sluice'@'localhost';\n",
             stack->db_password);
    for (size_t i = 0; stack_accounts[i]; i++)
        buf_addf(&sql, "CREATE USER IF NOT EXISTS 'sluice_%s'@'127.0.0.1' IDENTIFIED BY '%s';\n",
                 stack_accounts[i], stack->db_passwords[i]);
    return fs_write_sync(dir, "init.sql", buf_sv(&sql), 0600, err);
}

/* A server that starts removes the temporary tables that it finds in TMPDIR, whosesoever they are:
 * in /tmp those of the machine's own server or of another stack. ret_env has ARG_SIZE bytes. */
static enum err_code make_mariadb_tmp(struct stack *stack, char *ret_env, struct err *err)
{
    (void)snprintf(ret_env, ARG_SIZE, "TMPDIR=%s/mariadb/tmp", stack->state);
    return fs_make_dirs(stack->state_dir, "mariadb/tmp", 0700, NULL, err);
}

static enum err_code install_mariadb(struct stack *stack, struct err *err)
{
    static const char *const paths[] = {"/usr/bin/mariadb-install-db", "/usr/bin/mysql_install_db",
                                        NULL};
    char tmp[ARG_SIZE];
    const char *const env[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", tmp, NULL};
    char datadir[ARG_SIZE];
    const char *program = NULL;
    struct child install = {.name = "mariadb-install"};
    enum err_code rc = find_program(paths, "mariadb-server", &program, err);
    if (rc == ERR_OK)
        rc = make_mariadb_tmp(stack, tmp, err);
    if (rc)
        return rc;
    (void)snprintf(datadir, sizeof(datadir), "--datadir=%s/mariadb/data", stack->state);
    const char *const argv[] = {program,
                                "--no-defaults",
                                datadir,
                                "--auth-root-authentication-method=socket",
                                "--auth-root-socket-user=root",
                                "--skip-test-db",
                                "--force", /* even where no host name can be looked up */
                                geteuid() == 0 ? "--user=root" : "--skip-name-resolve",
                                NULL};
    struct child_start start = {
        .argv = argv, .env = env, .folder = stack->state, .log_dir = stack->log_dir};
    rc = child_start(&install, &start, err);
    if (rc)
        return rc;
    while (child_runs(&install))
        if (waitpid(install.pid, &install.status, 0) == install.pid)
            install.pid = 0;
    if (install.status != 0)
        return err_set(err, ERR_IO,
                       "mariadb-install-db failed; %s/log/mariadb-install.log tells why",
                       stack->state);
    return ERR_OK;
}

static enum err_code start_mariadb(struct stack *stack, struct err *err)
{
    static const char *const paths[] = {"/usr/sbin/mariadbd", "/usr/sbin/mysqld", NULL};
    char tmp[ARG_SIZE];
    const char *const env[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", tmp, NULL};
    struct child *child = &stack->children[CHILD_MARIADB];
    char datadir[ARG_SIZE];
    char port[ARG_SIZE];
    char init[ARG_SIZE];
    char pid_file[ARG_SIZE];
    char files[ARG_SIZE];
    const char *program = NULL;
    enum err_code rc = find_program(paths, "mariadb-server", &program, err);
    if (rc == ERR_OK)
        rc = make_mariadb_tmp(stack, tmp, err);
    if (rc == ERR_OK)
        rc = fs_make_dirs(stack->state_dir, "mariadb/files", 0700, NULL, err);
    if (rc == ERR_OK)
        rc = write_init_file(stack, err);
    if (rc)
        return rc;
    (void)snprintf(datadir, sizeof(datadir), "--datadir=%s/mariadb/data", stack->state);
    (void)snprintf(port, sizeof(port), "--port=%u", child->port);
    (void)snprintf(init, sizeof(init), "--init-file=%s/secrets/init.sql", stack->state);
    (void)snprintf(pid_file, sizeof(pid_file), "--pid-file=%s/mariadb/pid", stack->state);
    (void)snprintf(files, sizeof(files), "--secure-file-priv=%s/mariadb/files", stack->state);
    /* the socket's name is relative to the data folder, so that no long path can pass its limit */
    const char *const argv[] = {program,
                                "--no-defaults",
                                datadir,
                                port,
                                init,
                                pid_file,
                                files,
                                "--socket=mariadb.sock",
                                "--bind-address=127.0.0.1",
                                "--skip-name-resolve",
                                "--character-set-server=utf8mb4",
                                "--collation-server=utf8mb4_bin",
                                "--max-connections=400",
                                "--innodb-buffer-pool-size=128M",
                                geteuid() == 0 ? "--user=root" : "--skip-symbolic-links",
                                NULL};
    struct child_start start = {
        .argv = argv, .env = env, .folder = stack->state, .log_dir = stack->log_dir};
    return child_start(child, &start, err);
}

static enum err_code write_rabbitmq_files(const struct stack *stack, struct err *err)
{
    FD_AUTO int dir = -1;
    enum err_code rc = fs_make_dirs(stack->state_dir, "rabbitmq", 0700, &dir, err);
    if (rc)
        return rc;
    BUF_AUTO struct buf text = BUF_INIT(4096);
    buf_addf(&text,
             "listeners.tcp.1 = 127.0.0.1:%u\n"
             "default_user = sluice\n"
             "default_pass = %s\n"
             "vm_memory_high_watermark.relative = 0.3\n"
             "disk_free_limit.absolute = 100MB\n"
             "consumer_timeout = 36000000\n"
             "log.console = true\n"
             "log.console.level = warning\n"
             "log.file = false\n",
             stack->children[CHILD_RABBITMQ].port, stack->amqp_password);
    rc = fs_write_sync(dir, "rabbitmq.conf", buf_sv(&text), 0600, err);
    if (rc == ERR_OK)
        rc = fs_write_sync(dir, "enabled_plugins", SV("[].\n"), 0600, err);
    if (rc == ERR_OK && faccessat(dir, ".erlang.cookie", F_OK, 0) != 0)
        rc = fs_write_sync(dir, ".erlang.cookie", sv_of(stack->cookie), 0400, err);
    return rc;
}

static enum err_code start_epmd(struct stack *stack, struct err *err)
{
    static const char *const paths[] = {"/usr/bin/epmd", NULL};
    const char *const env[] = {"PATH=/usr/bin:/bin", NULL};
    struct child *child = &stack->children[CHILD_EPMD];
    char port[16];
    const char *program = NULL;
    enum err_code rc = find_program(paths, "erlang-base", &program, err);
    if (rc)
        return rc;
    (void)snprintf(port, sizeof(port), "%u", child->port);
    const char *const argv[] = {program, "-address", "127.0.0.1", "-port", port, NULL};
    struct child_start start = {
        .argv = argv, .env = env, .folder = stack->state, .log_dir = stack->log_dir};
    return child_start(child, &start, err);
}

static enum err_code start_rabbitmq(struct stack *stack, struct err *err)
{
    static const char *const paths[] = {"/usr/lib/rabbitmq/bin/rabbitmq-server", NULL};
    enum { ROWS = 13 };
    char env[ROWS][ARG_SIZE];
    const char *envp[ROWS + 1] = {NULL};
    struct child *child = &stack->children[CHILD_RABBITMQ];
    const char *program = NULL;
    enum err_code rc = find_program(paths, "rabbitmq-server", &program, err);
    if (rc == ERR_OK)
        rc = write_rabbitmq_files(stack, err);
    if (rc)
        return rc;
    const char *root = stack->state;
    (void)snprintf(env[0], ARG_SIZE, "PATH=/usr/lib/rabbitmq/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    (void)snprintf(env[1], ARG_SIZE, "HOME=%s/rabbitmq", root);
    (void)snprintf(env[2], ARG_SIZE, "RABBITMQ_NODENAME=sluice%u@localhost", child->port);
    (void)snprintf(env[3], ARG_SIZE, "RABBITMQ_MNESIA_BASE=%s/rabbitmq/data", root);
    (void)snprintf(env[4], ARG_SIZE, "RABBITMQ_LOG_BASE=%s/log", root);
    (void)snprintf(env[5], ARG_SIZE, "RABBITMQ_CONFIG_FILE=%s/rabbitmq/rabbitmq.conf", root);
    (void)snprintf(env[6], ARG_SIZE, "RABBITMQ_ENABLED_PLUGINS_FILE=%s/rabbitmq/enabled_plugins",
                   root);
    (void)snprintf(env[7], ARG_SIZE, "RABBITMQ_DIST_PORT=%u", stack->dist_port);
    (void)snprintf(env[8], ARG_SIZE, "ERL_EPMD_PORT=%u", stack->children[CHILD_EPMD].port);
    (void)snprintf(env[9], ARG_SIZE, "ERL_EPMD_ADDRESS=127.0.0.1");
    (void)snprintf(env[10], ARG_SIZE, "RABBITMQ_PID_FILE=%s/rabbitmq/pid", root);
    /* two schedulers that do not spin: a development machine has other work */
    (void)snprintf(env[11], ARG_SIZE, "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=+S 2:2 +sbwt none");
    /* the start script then becomes the node itself, with no shell between it and us */
    (void)snprintf(env[12], ARG_SIZE, "RUNNING_UNDER_SYSTEMD=true");
    for (size_t i = 0; i < ROWS; i++)
        envp[i] = env[i];
    const char *const argv[] = {program, NULL};
    struct child_start start = {
        .argv = argv, .env = envp, .folder = root, .log_dir = stack->log_dir};
    return child_start(child, &start, err);
}

enum err_code stack_start_server(struct stack *stack, enum stack_child which, struct err *err)
{
    if (which == CHILD_EPMD)
        return start_epmd(stack, err);
    return which == CHILD_MARIADB ? start_mariadb(stack, err) : start_rabbitmq(stack, err);
}

enum err_code stack_start_servers(struct stack *stack, struct err *err)
{
    enum err_code rc = ERR_OK;
    if (faccessat(stack->state_dir, "mariadb/data/mysql", F_OK, 0) != 0) {
        stack->progress("making the database's files");
        rc = fs_make_dirs(stack->state_dir, "mariadb/data", 0700, NULL, err);
        if (rc == ERR_OK)
            rc = install_mariadb(stack, err);
    }
    stack->progress("starting MariaDB and RabbitMQ");
    if (rc == ERR_OK)
        rc = start_epmd(stack, err);
    if (rc == ERR_OK)
        rc = child_wait_port(&stack->children[CHILD_EPMD], SERVER_START_MS, err);
    if (rc == ERR_OK)
        rc = start_rabbitmq(stack, err);
    if (rc == ERR_OK)
        rc = start_mariadb(stack, err);
    if (rc == ERR_OK)
        rc = child_wait_port(&stack->children[CHILD_MARIADB], SERVER_START_MS, err);
    if (rc == ERR_OK)
        rc = child_wait_port(&stack->children[CHILD_RABBITMQ], SERVER_START_MS, err);
    return rc;
}
