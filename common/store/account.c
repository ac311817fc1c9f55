/* SPDX-License-Identifier: MIT */
#include "common/store/account.h"

#include "common/store/db.h"

#define NAME_MAX_BYTES 64
#define SQL_BYTES_MAX ((size_t)64 * 1024)

static const char *const accounts[] = {"web", "worker", "recovery", "reader", "webhook"};

static const struct {
    const char *table;
    const char *rights[ARRAY_LEN(accounts)];
} tables[] = {
#define ACCOUNT_TABLE(table, ...) {#table, {__VA_ARGS__}},
#include "common/store/account.def"
#undef ACCOUNT_TABLE
};

/* They go into the text of statements: a grant takes no parameters. */
static enum err_code check_name(const char *what, const char *name, struct err *err)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:%/";
    size_t length = strlen(name);
    if (length <= NAME_MAX_BYTES && strspn(name, allowed) == length)
        return ERR_OK;
    return err_set(err, ERR_INVALID,
                   "the %s '%.64s' is not one: letters, digits and _-.:%%/, at most %d of them",
                   what, name, NAME_MAX_BYTES);
}

static void add_rights(struct buf *sql, const char *letters)
{
    static const struct {
        char letter;
        const char *right;
    } rights[] = {{'S', "SELECT"}, {'I', "INSERT"}, {'U', "UPDATE"}, {'D', "DELETE"}};
    const char *separator = "GRANT ";
    for (size_t i = 0; i < ARRAY_LEN(rights); i++) {
        if (!strchr(letters, rights[i].letter))
            continue;
        buf_addf(sql, "%s%s", separator, rights[i].right);
        separator = ", ";
    }
}

enum err_code account_sql(const struct account_site *site, struct buf *ret_sql, struct err *err)
{
    enum err_code rc = check_name("schema", site->schema, err);
    if (rc == ERR_OK)
        rc = check_name("prefix", site->prefix, err);
    if (rc == ERR_OK)
        rc = check_name("host", site->host, err);
    if (rc)
        return rc;
    /* Or a grant to an account that is not there would make one without a password. */
    buf_add_text(ret_sql, "SET @sluice = 1 /*M!, SESSION sql_mode = CONCAT(@@sql_mode, "
                          "',NO_AUTO_CREATE_USER') */;\n");
    for (size_t a = 0; a < ARRAY_LEN(accounts); a++) {
        for (size_t t = 0; t < ARRAY_LEN(tables); t++) {
            if (!tables[t].rights[a][0])
                continue;
            add_rights(ret_sql, tables[t].rights[a]);
            buf_addf(ret_sql, " ON `%s`.%s TO '%s%s'@'%s';\n", site->schema, tables[t].table,
                     site->prefix, accounts[a], site->host);
        }
    }
    return ret_sql->failed ? err_set(err, ERR_NOMEM, "no memory for the grants") : ERR_OK;
}

enum err_code account_grant(const struct store_config *cfg, const struct account_site *site,
                            struct err *err)
{
    AUTO(db_free) struct db *db = NULL;
    BUF_AUTO struct buf sql = BUF_INIT(SQL_BYTES_MAX);
    enum err_code rc = account_sql(site, &sql, err);
    if (rc == ERR_OK)
        rc = db_open(cfg, &db, err);
    struct sv rest = buf_sv(&sql);
    while (rc == ERR_OK && rest.len > 0) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        size_t length = (size_t)(end - rest.ptr);
        rc = db_run_text(db, (struct sv){rest.ptr, length - 1}, err); /* without its ';' */
        rest = (struct sv){end + 1, rest.len - length - 1};
    }
    return rc;
}
