/* SPDX-License-Identifier: MIT */
#include "common/store/db_conn.h"

#include "common/store/db.h"

#include <assert.h>
#include <sys/socket.h>

#if DB_CAN_PIPE

static void set_read_later(struct db *db, bool later)
{
    db_flag flag = later;
    (void)mysql_optionsv(db->conn, MARIADB_OPT_SKIP_READ_RESPONSE, &flag);
}

enum err_code db_send(struct db *db, MYSQL_STMT *stmt, const char *name, struct err *err)
{
    bool owed = db->txn == DB_TXN_OWED;
    enum err_code rc = owed ? db_prepare(db, DB_BEGIN_TXN, err) : ERR_OK;
    if (rc)
        return rc;
    set_read_later(db, true);
    if (owed) {
        db->txn = DB_TXN_OPEN;
        db->unread_open = true;
        if (mysql_stmt_execute(db->stmts[DB_BEGIN_TXN]) != 0)
            rc = db_stmt_failed(db, db_stmt_name(DB_BEGIN_TXN), db->stmts[DB_BEGIN_TXN], err);
    }
    if (rc == ERR_OK && mysql_stmt_execute(stmt) != 0)
        rc = db_stmt_failed(db, name, stmt, err);
    set_read_later(db, false);
    if (rc)
        db->lost = true; /* answers may be on their way that nobody will read */
    return rc;
}

/* The library expects the answer to what it sent last; that to an earlier one begins to count its
 * packets anew as well. */
#define FIRST_PACKET 1

static enum err_code receive_open(struct db *db, struct err *err)
{
    if (!db->unread_open)
        return ERR_OK;
    db->unread_open = false;
    db->conn->net.pkt_nr = FIRST_PACKET;
    MYSQL_STMT *stmt = db->stmts[DB_BEGIN_TXN];
    if (db->conn->methods->db_read_execute_response(stmt) == 0)
        return ERR_OK;
    enum err_code rc = db_stmt_failed(db, db_stmt_name(DB_BEGIN_TXN), stmt, err);
    db->lost = true; /* with the answers to what was sent behind it */
    return rc;
}

enum err_code db_receive(struct db *db, MYSQL_STMT *stmt, const char *name, struct err *err)
{
    enum err_code rc = receive_open(db, err);
    if (rc)
        return rc;
    db->conn->net.pkt_nr = FIRST_PACKET;
    if (db->conn->methods->db_read_execute_response(stmt) != 0)
        rc = db_stmt_failed(db, name, stmt, err);
    return rc;
}

/* The least that an answer to a write can be: four bytes of head, and what says how it went. */
#define ANSWER_BYTES_MIN 11

static void set_wake_bytes(struct db *db, size_t bytes)
{
    int value = (int)bytes;
    (void)setsockopt(mysql_get_socket(db->conn), SOL_SOCKET, SO_RCVLOWAT, &value, sizeof(value));
}

/* The answer to the opening, before those to `count` statements. We sleep until all of them but one
 * must be there: the server sends each by itself, and need not wake us by each of them. */
static enum err_code receive_open_of(struct db *db, size_t count, struct err *err)
{
    if (!db->unread_open)
        return ERR_OK;
    set_wake_bytes(db, count * ANSWER_BYTES_MIN + 1);
    enum err_code rc = receive_open(db, err);
    set_wake_bytes(db, 1); /* part of the others may be here already */
    return rc;
}

/* Every answer is read, or the connection would be out of step; the first failure is told. */
static enum err_code receive_all(struct db *db, struct db_call *calls, size_t count,
                                 struct err *err)
{
    enum err_code first = receive_open_of(db, count, err);
    enum db_trouble trouble = db->trouble;
    for (size_t i = 0; i < count && !db->lost; i++) {
        struct err later = {0};
        MYSQL_STMT *stmt = db->stmts[calls[i].id];
        enum err_code rc = db_receive(db, stmt, db_stmt_name(calls[i].id), first ? &later : err);
        if (rc == ERR_OK) {
            calls[i].rows = db_note_written(db, stmt);
            calls[i].insert_id = db->insert_id;
        } else if (first == ERR_OK) {
            first = rc;
            trouble = db->trouble;
        }
    }
    if (first && !db->lost)
        db->trouble = trouble;
    return first;
}

enum err_code db_exec_all(struct db *db, struct db_call *calls, size_t count, struct err *err)
{
    assert(db->txn != DB_TXN_NONE);
    for (size_t i = 0; i < count; i++) { /* a statement that is new to the connection is prepared */
        enum err_code rc = db_prepare(db, calls[i].id, err);
        if (rc)
            return rc;
    }
    for (size_t i = 0; i < count; i++) {
        const char *name = db_stmt_name(calls[i].id);
        MYSQL_STMT *stmt = db->stmts[calls[i].id];
        enum err_code rc = db_bind(db, name, stmt, calls[i].args, err);
        if (rc == ERR_OK)
            rc = db_send(db, stmt, name, err);
        if (rc) {
            db->lost = db->lost || i > 0;
            return rc;
        }
    }
    return receive_all(db, calls, count, err);
}

#else

enum err_code db_exec_all(struct db *db, struct db_call *calls, size_t count, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        enum err_code rc = db_exec(db, calls[i].id, calls[i].args, &calls[i].rows, err);
        if (rc)
            return rc;
        calls[i].insert_id = db->insert_id;
    }
    return ERR_OK;
}

#endif
