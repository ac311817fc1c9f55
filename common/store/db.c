/* SPDX-License-Identifier: MIT */
#include "common/store/db_conn.h"

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/store/db.h"

#include <errmsg.h>
#include <fcntl.h>
#include <pthread.h>

/* The server's numbers; the two client libraries do not name the same ones. */
enum {
    SERVER_CHECK_READ = 1020, /* MariaDB: the row has changed since it was read */
    SERVER_TOO_MANY_CONNECTIONS = 1040,
    SERVER_NOT_PRIMARY = 1047, /* Galera: the node has no quorum, or is not in sync */
    SERVER_TABLE_EXISTS = 1050,
    SERVER_SHUTDOWN = 1053,
    SERVER_COLUMN_EXISTS = 1060,
    SERVER_SCHEMA_DENIED = 1044, /* the account has no right on any table of it */
    SERVER_KEY_EXISTS = 1061,
    SERVER_DUPLICATE = 1062,
    SERVER_NORMAL_SHUTDOWN = 1077,
    SERVER_NO_KEY_TO_DROP = 1091,
    SERVER_ABORTS_CONNECTION = 1152,
    SERVER_READ_ERROR = 1158,
    SERVER_READ_INTERRUPTED = 1159,
    SERVER_WRITE_ERROR = 1160,
    SERVER_WRITE_INTERRUPTED = 1161,
    SERVER_TOO_MANY_OF_USER = 1203,
    SERVER_TABLE_DENIED = 1142,
    SERVER_COLUMN_DENIED = 1143,
    SERVER_LOCK_WAIT = 1205,
    SERVER_DEADLOCK = 1213,
    SERVER_UNKNOWN_STATEMENT = 1243,
    SERVER_READ_ONLY = 1290, /* of no other option that our statements meet */
    SERVER_INTERRUPTED = 1317,
    SERVER_READ_ONLY_TRANSACTION = 1792,
    SERVER_READ_ONLY_STORAGE = 1836,
    SERVER_KILLED = 1927,         /* MariaDB */
    SERVER_TOO_LONG = 1969,       /* MariaDB: max_statement_time */
    SERVER_TOO_LONG_MYSQL = 3024, /* MySQL: max_execution_time */
    SERVER_LOCK_NOWAIT = 3572,    /* MySQL 8 */
    SERVER_IDLE_TOO_LONG = 4031,  /* MySQL 8 */
};

static const struct {
    unsigned number;
    enum db_trouble trouble;
} trouble_table[] = {
    {0, DB_LOST}, /* the library ran out of memory in a place where it does not say so */
    {CR_OUT_OF_MEMORY, DB_LOST}, /* half a conversation, perhaps */
    {CR_CONNECTION_ERROR, DB_LOST},
    {CR_CONN_HOST_ERROR, DB_LOST},
    {CR_UNKNOWN_HOST, DB_LOST},
    {CR_SERVER_GONE_ERROR, DB_LOST},
    {CR_SERVER_HANDSHAKE_ERR, DB_LOST},
    {CR_SERVER_LOST, DB_LOST},
    {CR_COMMANDS_OUT_OF_SYNC, DB_LOST},
    {CR_SSL_CONNECTION_ERROR, DB_LOST},
    {CR_MALFORMED_PACKET, DB_LOST},
    {CR_SERVER_LOST_EXTENDED, DB_LOST},
    {SERVER_TOO_MANY_CONNECTIONS, DB_LOST},
    {SERVER_SHUTDOWN, DB_LOST},
    {SERVER_NORMAL_SHUTDOWN, DB_LOST},
    {SERVER_ABORTS_CONNECTION, DB_LOST},
    {SERVER_READ_ERROR, DB_LOST},
    {SERVER_READ_INTERRUPTED, DB_LOST},
    {SERVER_WRITE_ERROR, DB_LOST},
    {SERVER_WRITE_INTERRUPTED, DB_LOST},
    {SERVER_TOO_MANY_OF_USER, DB_LOST},
    /* Another server is the primary now: only a new connection can lead to it. */
    {SERVER_NOT_PRIMARY, DB_LOST},
    {SERVER_READ_ONLY, DB_LOST},
    {SERVER_READ_ONLY_TRANSACTION, DB_LOST},
    {SERVER_READ_ONLY_STORAGE, DB_LOST},
    /* As if the socket's timeout had come first, which it does when the server hangs as a whole. */
    {SERVER_TOO_LONG, DB_LOST},
    {SERVER_TOO_LONG_MYSQL, DB_LOST},
    {SERVER_UNKNOWN_STATEMENT, DB_LOST},
    {SERVER_INTERRUPTED, DB_LOST},
    {SERVER_KILLED, DB_LOST},
    {SERVER_IDLE_TOO_LONG, DB_LOST},
    {SERVER_CHECK_READ, DB_AGAIN},
    {SERVER_LOCK_WAIT, DB_AGAIN},
    {SERVER_LOCK_NOWAIT, DB_AGAIN},
    {SERVER_DEADLOCK, DB_AGAIN},
};

static pthread_once_t library = PTHREAD_ONCE_INIT;

/* Before the first connection: mysql_init() would do it too, but not safely in two threads. */
static void library_open(void)
{
    if (mysql_library_init(0, NULL, NULL) != 0)
        abort();
}

/* All but the first are for changes of the schema. */
static bool is_done_already(unsigned number)
{
    return number == SERVER_DUPLICATE || number == SERVER_TABLE_EXISTS ||
           number == SERVER_COLUMN_EXISTS || number == SERVER_KEY_EXISTS ||
           number == SERVER_NO_KEY_TO_DROP;
}

static const char *cure_of(unsigned number)
{
    if (number == CR_SSL_CONNECTION_ERROR)
        return "; db.tls_ca must hold the CA of the server's certificate, which must name db.host";
    if (number == SERVER_SCHEMA_DENIED || number == SERVER_TABLE_DENIED ||
        number == SERVER_COLUMN_DENIED)
        return "; `sluice grants` prints what each account needs";
    return "";
}

static bool is_read_only(unsigned number)
{
    return number == SERVER_NOT_PRIMARY || number == SERVER_READ_ONLY ||
           number == SERVER_READ_ONLY_TRANSACTION || number == SERVER_READ_ONLY_STORAGE;
}

static bool is_too_long(unsigned number)
{
    return number == SERVER_TOO_LONG || number == SERVER_TOO_LONG_MYSQL;
}

enum err_code db_failed(struct db *db, const char *what, unsigned number, const char *text,
                        struct err *err)
{
    db->trouble = DB_FINE;
    if (db->searches && is_too_long(number))
        return err_set(err, ERR_TIMEOUT,
                       "the search reads more than %u ms allow (nine tenths of "
                       "db.query_timeout_ms); narrow it by queue, name, owner or status",
                       db->statement_ms);
    for (size_t i = 0; i < ARRAY_LEN(trouble_table); i++) {
        if (trouble_table[i].number == number)
            db->trouble = trouble_table[i].trouble;
    }
    if (db->trouble == DB_LOST)
        db->lost = true;
    db->denied = number == SERVER_TABLE_DENIED || number == SERVER_COLUMN_DENIED;
    db->read_only = db->read_only || is_read_only(number);
    enum err_code code = ERR_DB;
    if (db->trouble == DB_LOST)
        code = ERR_DB_AWAY;
    else if (is_done_already(number))
        code = ERR_DUPLICATE;
    return err_set(err, code, "%s: %s (%u)%s", what, text, number, cure_of(number));
}

static unsigned seconds_of(uint32_t ms)
{
    return ms / 1000 + (ms % 1000 != 0);
}

static void set_tls(MYSQL *conn, const char *ca)
{
    (void)mysql_options(conn, MYSQL_OPT_SSL_CA, ca);
#if DB_IS_MARIADB
    my_bool yes = 1;
    (void)mysql_options(conn, MYSQL_OPT_SSL_ENFORCE, &yes);
    (void)mysql_options(conn, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &yes);
#else
    unsigned mode = SSL_MODE_VERIFY_IDENTITY;
    (void)mysql_options(conn, MYSQL_OPT_SSL_MODE, &mode);
#endif
}

static void set_options(MYSQL *conn, const struct store_config *cfg)
{
    unsigned connect_s = seconds_of(cfg->connect_timeout_ms);
    unsigned query_s = seconds_of(cfg->query_timeout_ms);
    unsigned tcp = MYSQL_PROTOCOL_TCP; /* "localhost" would mean a unix socket */
    (void)mysql_options(conn, MYSQL_OPT_PROTOCOL, &tcp);
    (void)mysql_options(conn, MYSQL_OPT_CONNECT_TIMEOUT, &connect_s);
    (void)mysql_options(conn, MYSQL_OPT_READ_TIMEOUT, &query_s);
    (void)mysql_options(conn, MYSQL_OPT_WRITE_TIMEOUT, &query_s);
    (void)mysql_options(conn, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    if (cfg->tls_ca && *cfg->tls_ca)
        set_tls(conn, cfg->tls_ca);
}

/* The client libraries leave their socket open over an exec: then a child of this process would
 * keep the server from seeing that it has died, and the rows that it had locked from everybody
 * else. */
static void close_on_exec(MYSQL *conn)
{
#if DB_IS_MARIADB
    int fd = mysql_get_socket(conn);
#else
    int fd = conn->net.fd;
#endif
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
}

#define IDLE_TRANSACTION_S "3" /* well below a lease of the defaults */

/* The server ends a lock wait and a statement before the socket's timeout does: that would lose the
 * connection, and the statement would go on with nobody to read its answer. MySQL limits SELECT
 * only; a comment of one server is code to the other. */
static enum err_code set_limits(struct db *db, const struct store_config *cfg, struct err *err)
{
    char text[240];
    unsigned socket_s = seconds_of(cfg->query_timeout_ms);
    unsigned lock_s = socket_s < 4 ? 1 : socket_s / 2;
    db->statement_ms = socket_s * 1000 / 10 * 9;
    (void)snprintf(text, sizeof(text),
                   "SET SESSION innodb_lock_wait_timeout = %u /*M!, SESSION max_statement_time = "
                   "%u.%03u */ /*!50708 , SESSION max_execution_time = %u */",
                   lock_s, db->statement_ms / 1000, db->statement_ms % 1000, db->statement_ms);
    return db_run_text(db, sv_of(text), err);
}

/* READ COMMITTED: our writes are guarded by their WHERE, none relies on a snapshot, and unlike
 * REPEATABLE READ it locks no gaps: fewer deadlocks between inserts and searches. */
static enum err_code set_session(struct db *db, const struct store_config *cfg, struct err *err)
{
    static const char *const settings[] = {
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,NO_ZERO_DATE,"
        "NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO', time_zone = '+00:00', autocommit = 1, "
        /* Or the answer to each change of autocommit tells of it at length. */
        "session_track_system_variables = ''",
        /* A process that is stopped in a transaction would keep its rows from the one that takes
         * over; ours never wait for anything else in one. MySQL has no such limit (the comment is
         * code to MariaDB only): there the row is free when the stopped host's connection ends. */
        "SET @sluice = 1 /*M!, SESSION idle_transaction_timeout = " IDLE_TRANSACTION_S " */",
    };
    for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
        enum err_code rc = db_run_text(db, sv_of(settings[i]), err);
        if (rc)
            return rc;
    }
    enum err_code rc = set_limits(db, cfg, err);
    if (rc == ERR_OK && FAULT_FAILS("db.no_idle_limit")) /* as on MySQL */
        rc = db_run_text(db, SV("SET SESSION idle_transaction_timeout = 0"), err);
    if (rc)
        return rc;
    bool found = false;
    return db_one(db, DB_AUTO_STEP, DB_NO_ARGS, DB_COLS(COL_U64(&db->auto_step)), &found, err);
}

enum err_code db_open(const struct store_config *cfg, struct db **ret_db, struct err *err)
{
    (void)pthread_once(&library, library_open);
    AUTO(db_free) struct db *db = calloc(1, sizeof(*db));
    if (!db)
        return err_set(err, ERR_NOMEM, "no memory for a database connection");
    db->opened_ms = clock_mono_ms();
    db->conn = mysql_init(NULL);
    if (!db->conn)
        return err_set(err, ERR_NOMEM, "no memory for a database connection");
    set_options(db->conn, cfg);
    /* FOUND_ROWS: an update that finds its row but changes nothing has still found it. */
    if (!mysql_real_connect(db->conn, cfg->host, cfg->user, cfg->password, cfg->name, cfg->port,
                            NULL, CLIENT_FOUND_ROWS)) {
        enum err_code rc =
            db_failed(db, "connect", mysql_errno(db->conn), mysql_error(db->conn), err);
        db->lost = true;
        return rc;
    }
    close_on_exec(db->conn);
    enum err_code rc = set_session(db, cfg, err);
    if (rc)
        return rc;
    *ret_db = TAKE(db);
    return ERR_OK;
}

void db_free(struct db *db)
{
    if (!db)
        return;
    db_end(db);
    for (int i = 0; i < DB_STMT_COUNT; i++) {
        if (db->stmts[i])
            (void)mysql_stmt_close(db->stmts[i]);
    }
    if (db->conn)
        mysql_close(db->conn);
    free(db);
}

void db_thread_end(void)
{
    mysql_thread_end();
}

enum db_trouble db_trouble(const struct db *db)
{
    return db->trouble;
}

bool db_is_lost(const struct db *db)
{
    return db->lost;
}

bool db_is_read_only(const struct db *db)
{
    return db->read_only;
}

int64_t db_opened_ms(const struct db *db)
{
    return db->opened_ms;
}

enum err_code db_lose(struct db *db, const char *what, struct err *err)
{
    return db_failed(db, what, CR_SERVER_LOST, "lost by a failure point", err);
}

uint64_t db_insert_id(const struct db *db)
{
    return db->insert_id;
}

uint64_t db_auto_step(const struct db *db)
{
    return db->auto_step;
}

enum err_code db_run_text(struct db *db, struct sv sql, struct err *err)
{
    enum err_code rc = db_open_owed(db, err);
    if (rc)
        return rc;
    db->trouble = DB_FINE;
    if (mysql_real_query(db->conn, sql.ptr, (unsigned long)sql.len) == 0) {
        MYSQL_RES *result = mysql_store_result(db->conn);
        if (result)
            mysql_free_result(result);
        if (mysql_errno(db->conn) == 0)
            return ERR_OK;
    }
    char what[60];
    (void)snprintf(what, sizeof(what), "%.*s", (int)(sql.len < 50 ? sql.len : 50), sql.ptr);
    return db_failed(db, what, mysql_errno(db->conn), mysql_error(db->conn), err);
}
