/* SPDX-License-Identifier: MIT */
#include "common/store/hook_store.h"

#include "common/base/clock.h"
#include "common/store/reading.h"

#define VIEW_COL_LIST(row)                                                                         \
    COL_UUID(&(row)->id), COL_UUID(&(row)->subscription), COL_UUID(&(row)->job),                   \
        COL_U64(&(row)->seq), COL_TEXT((row)->event), COL_TEXT((row)->state),                      \
        COL_U32(&(row)->attempts), COL_U32(&(row)->http_status), COL_TEXT((row)->error),           \
        COL_I64(&(row)->created_us), COL_I64(&(row)->next_us), COL_I64(&(row)->ended_us),          \
        COL_TEXT((row)->name), COL_TEXT((row)->url), COL_BOOL(&(row)->has_subscription)

static enum err_code no_such_delivery(const struct uuid *id, struct err *err)
{
    char text[UUID_TEXT_SIZE];
    return err_set(err, ERR_NOT_FOUND, "there is no delivery %s", uuid_text(id, text));
}

/* ---- a page --------------------------------------------------------------------------------- */

struct page {
    const struct delivery_query *query;
    struct uuid place; /* behind this one */
    struct uuid end;   /* down to this one */
    bool has_end;
    uint32_t most;
    struct rows rows;
};

static enum err_code read_page(struct store *store, struct page *page, struct err *err)
{
    const struct delivery_query *query = page->query;
    const struct db_arg tenant = db_text(query->tenant);
    const struct db_arg place = db_uuid(&page->place);
    const struct db_arg end = db_uuid(&page->end);
    const struct db_arg state = db_text(query->state);
    const struct db_arg name = db_text(query->name);
    const struct db_arg most = db_u64(page->most);
    struct delivery_view row = {.seq = 0};
    struct reading reading = {
        .stmt = query->job ? DB_DELIVERY_LIST_JOB : DB_DELIVERY_LIST,
        .args = query->job ? DB_ARGS(tenant, db_uuid(query->job), place, end, state, name, most)
                           : DB_ARGS(tenant, place, end, state, name, most),
        .cols = DB_COLS(VIEW_COL_LIST(&row)),
        .row = &row,
        .rows = &page->rows};
    return read_all(store, &reading, err);
}

static enum err_code read_end(struct store *store, struct page *page, struct err *err)
{
    const struct delivery_query *query = page->query;
    page->end = (struct uuid){{0}};
    const struct reading reading = {
        .stmt = DB_DELIVERY_END,
        .args = DB_ARGS(db_text(query->tenant), db_uuid(&page->place), db_u64(query->stretch - 1)),
        .cols = DB_COLS(COL_UUID(&page->end))};
    return read_one(store, &reading, &page->has_end, err);
}

static enum err_code add_found(struct page *page, struct rows *found, struct err *err)
{
    const struct delivery_view *views = page->rows.items;
    enum err_code rc = ERR_OK;
    for (size_t i = 0; i < page->rows.count && rc == ERR_OK; i++)
        rc = rows_add(found, &views[i], err);
    return rc;
}

/* One more than the page tells whether there is more. */
static enum err_code look_through(struct store *store, struct page *page, struct rows *found,
                                  struct err *err)
{
    const struct delivery_query *query = page->query;
    bool stretches = query->stretch > 0 && !query->job && (query->state || query->name);
    int64_t until_ms = clock_mono_ms() + query->look_ms;
    bool goes_on = true;
    enum err_code rc = ERR_OK;
    while (rc == ERR_OK && goes_on) {
        page->most = query->limit + 1 - (uint32_t)found->count;
        rc = stretches ? read_end(store, page, err) : ERR_OK;
        if (rc == ERR_OK)
            rc = read_page(store, page, err);
        if (rc == ERR_OK)
            rc = add_found(page, found, err);
        page->place = page->end;
        goes_on = page->has_end && found->count <= query->limit && clock_mono_ms() < until_ms;
    }
    return rc;
}

static void give_list(const struct page *page, struct rows *found, struct delivery_list *ret_list)
{
    struct delivery_list list = {.count = found->count};
    list.items = rows_take(found);
    list.more = page->has_end || list.count > page->query->limit;
    if (list.count > page->query->limit) {
        list.count = page->query->limit;
        list.last = list.items[list.count - 1].id;
    } else {
        list.last = page->end;
    }
    *ret_list = list;
}

enum err_code hook_log_list(struct store *store, const struct delivery_query *query,
                            struct delivery_list *ret_list, struct err *err)
{
    struct page page = {.query = query, .rows = ROWS_OF(struct delivery_view)};
    struct rows found = ROWS_OF(struct delivery_view);
    memset(&page.place, 0xFF, sizeof(page.place));
    if (query->after)
        page.place = *query->after;
    enum err_code rc = look_through(store, &page, &found, err);
    if (rc == ERR_OK)
        give_list(&page, &found, ret_list);
    rows_done(&page.rows);
    rows_done(&found);
    return rc;
}

/* ---- one ------------------------------------------------------------------------------------ */

struct look {
    const char *tenant;
    const struct uuid *id;
    struct delivery_detail *detail;
    bool found;
};

static enum err_code read_attempts(struct txn *txn, struct look *look, struct err *err)
{
    struct delivery_detail *detail = look->detail;
    struct delivery_attempt row = {.attempt = 0};
    bool more = true;
    detail->attempt_count = 0;
    enum err_code rc =
        db_select(txn->db, DB_DELIVERY_ATTEMPTS, DB_ARGS(db_uuid(look->id)),
                  DB_COLS(COL_U32(&row.attempt), COL_I64(&row.at_us), COL_U32(&row.took_ms),
                          COL_U32(&row.http_status), COL_TEXT(row.error)),
                  err);
    while (rc == ERR_OK && more) {
        rc = db_next(txn->db, &more, err);
        if (rc == ERR_OK && more && detail->attempt_count < HOOK_ATTEMPTS_MAX)
            detail->attempts[detail->attempt_count++] = row;
    }
    db_end(txn->db);
    return rc;
}

static enum err_code read_detail(struct txn *txn, void *ctx, struct err *err)
{
    struct look *look = ctx;
    struct delivery_detail *detail = look->detail;
    enum err_code rc =
        db_one(txn->db, DB_DELIVERY_GET, DB_ARGS(db_uuid(look->id), db_text(look->tenant)),
               DB_COLS(VIEW_COL_LIST(&detail->view), COL_HEAP(&detail->body)), &look->found, err);
    return rc || !look->found ? rc : read_attempts(txn, look, err);
}

enum err_code hook_log_get(struct store *store, const char *tenant, const struct uuid *id,
                           struct delivery_detail *ret_detail, struct err *err)
{
    struct delivery_detail detail = {.body = NULL};
    struct look look = {.tenant = tenant, .id = id, .detail = &detail};
    enum err_code rc = store_once(store, read_detail, &look, err);
    if (rc == ERR_OK && !look.found)
        rc = no_such_delivery(id, err);
    if (rc)
        free(detail.body);
    else
        *ret_detail = detail;
    return rc;
}

static enum err_code send_again(struct txn *txn, void *ctx, struct err *err)
{
    struct look *look = ctx;
    char state[17] = "";
    bool enabled = false;
    enum err_code rc =
        db_one(txn->db, DB_DELIVERY_LOCK, DB_ARGS(db_uuid(look->id), db_text(look->tenant)),
               DB_COLS(COL_TEXT(state), COL_BOOL(&enabled)), &look->found, err);
    if (rc)
        return rc;
    if (!look->found)
        return no_such_delivery(look->id, err);
    if (strcmp(state, "held") == 0 || (strcmp(state, "due") == 0 && !txn->commit_unknown))
        return err_set(err, ERR_STATE, "it is not delivered yet: it is %s", state);
    if (!enabled)
        return err_set(err, ERR_STATE, "its subscription is gone or disabled");
    return db_exec(txn->db, DB_DELIVERY_AGAIN, DB_ARGS(db_uuid(look->id)), NULL, err);
}

enum err_code hook_log_again(struct store *store, const char *tenant, const struct uuid *id,
                             struct err *err)
{
    struct look look = {.tenant = tenant, .id = id};
    return store_txn(store, send_again, &look, err);
}
