/* SPDX-License-Identifier: MIT */
#include "common/store/feed_store.h"

#include "common/base/clock.h"
#include "common/store/job_row.h"
#include "common/store/rows.h"

#define BEGIN_ROWS 10000 /* the newest ones are looked at for some that are not committed */
#define SAMPLE_MS (FEED_GRACE_MS / 8) /* so far apart: the oldest is older than the grace */

/* ---- statements ------------------------------------------------------------------------------ */

struct head {
    uint64_t newest;
};

static enum err_code read_head(struct txn *txn, void *ctx, struct err *err)
{
    struct head *head = ctx;
    bool found = false;
    return db_one(txn->db, DB_FEED_HEAD, DB_NO_ARGS, DB_COLS(COL_U64(&head->newest)), &found, err);
}

enum err_code feed_newest(struct store *store, uint64_t *ret_newest, struct err *err)
{
    struct head head = {0};
    enum err_code rc = store_once(store, read_head, &head, err);
    if (rc == ERR_OK)
        *ret_newest = head.newest;
    return rc;
}

struct numbers {
    uint64_t after;
    uint64_t upto;
    struct rows rows; /* uint64_t */
};

static enum err_code read_numbers(struct txn *txn, void *ctx, struct err *err)
{
    struct numbers *numbers = ctx;
    uint64_t seq = 0;
    bool more = true;
    rows_clear(&numbers->rows);
    enum err_code rc =
        db_select(txn->db, DB_FEED_SEQS,
                  DB_ARGS(db_u64(numbers->after), db_u64(numbers->upto), db_u64(FEED_PAGE_MAX)),
                  DB_COLS(COL_U64(&seq)), err);
    while (rc == ERR_OK && more) {
        rc = db_next(txn->db, &more, err);
        if (rc == ERR_OK && more)
            rc = rows_add(&numbers->rows, &seq, err);
    }
    db_end(txn->db);
    return rc;
}

struct range { /* between two numbers, both left out */
    uint64_t after;
    uint64_t before;
    uint64_t rows;
    bool is_open; /* some row is not committed */
};

/* A row that is written and not committed is locked by its transaction. */
static enum err_code probe(struct txn *txn, void *ctx, struct err *err)
{
    struct range *range = ctx;
    struct err refused = {0};
    bool found = false;
    enum err_code rc =
        db_one(txn->db, DB_FEED_PROBE, DB_ARGS(db_u64(range->after), db_u64(range->before)),
               DB_COLS(COL_U64(&range->rows)), &found, &refused);
    range->is_open = rc != ERR_OK && db_trouble(txn->db) == DB_AGAIN;
    if (rc == ERR_OK || range->is_open)
        return ERR_OK;
    *err = refused;
    return rc;
}

/* ---- how far it is safe to read -------------------------------------------------------------- */

static void add_sample(struct feed_mark *mark, uint64_t newest)
{
    int64_t now_ms = clock_mono_ms();
    unsigned last = (mark->next + FEED_SAMPLES - 1) % FEED_SAMPLES;
    if (mark->samples[last].at_ms && now_ms - mark->samples[last].at_ms < SAMPLE_MS)
        return;
    mark->samples[mark->next].at_ms = now_ms;
    mark->samples[mark->next].newest = newest;
    mark->next = (mark->next + 1) % FEED_SAMPLES;
}

/* The newest number that was there before the grace began; 0: not known yet. */
static uint64_t settled(const struct feed_mark *mark)
{
    int64_t before_ms = clock_mono_ms() - FEED_GRACE_MS;
    uint64_t newest = 0;
    for (unsigned i = 0; i < FEED_SAMPLES; i++) {
        if (mark->samples[i].at_ms && mark->samples[i].at_ms <= before_ms &&
            mark->samples[i].newest > newest)
            newest = mark->samples[i].newest;
    }
    return newest;
}

/* What was written before the beginning is not told; it begins when no more of that can come. */
static enum err_code begin(struct store *store, struct feed_mark *mark, uint64_t newest,
                           struct err *err)
{
    if (mark->since_ms == 0) {
        mark->since_ms = clock_mono_ms();
        mark->safe = newest;
    }
    struct range range = {.after = mark->safe > BEGIN_ROWS ? mark->safe - BEGIN_ROWS : 0,
                          .before = mark->safe + 1};
    add_sample(mark, newest);
    if (clock_mono_ms() - mark->since_ms < FEED_GRACE_MS)
        return ERR_OK;
    enum err_code rc = store_once(store, probe, &range, err);
    mark->is_begun = rc == ERR_OK && !range.is_open;
    return rc;
}

/* Whether everything between two rows has come that is going to. */
static enum err_code may_skip(struct store *store, const struct feed_mark *mark, uint64_t seq,
                              bool *ret_may, struct err *err)
{
    struct range hole = {.after = mark->safe, .before = seq};
    *ret_may = false;
    if (seq > settled(mark))
        return ERR_OK;
    enum err_code rc = store_once(store, probe, &hole, err);
    if (rc == ERR_OK)
        *ret_may = !hole.is_open && hole.rows == 0;
    return rc;
}

static enum err_code walk(struct store *store, struct feed_mark *mark, const struct rows *rows,
                          struct err *err)
{
    const uint64_t *seqs = rows->items;
    bool may = true;
    for (size_t i = 0; i < rows->count; i++) {
        enum err_code rc = ERR_OK;
        if (seqs[i] != mark->safe + 1)
            rc = may_skip(store, mark, seqs[i], &may, err);
        if (rc || !may)
            return rc;
        mark->safe = seqs[i];
    }
    return ERR_OK;
}

enum err_code feed_advance(struct store *store, struct feed_mark *mark, bool *ret_more,
                           struct err *err)
{
    uint64_t newest = 0;
    struct numbers numbers = {.after = mark->safe, .rows = ROWS_OF(uint64_t)};
    enum err_code rc = feed_newest(store, &newest, err);
    *ret_more = false;
    if (rc || !mark->is_begun)
        return rc ? rc : begin(store, mark, newest, err);
    add_sample(mark, newest);
    if (newest <= mark->safe)
        return ERR_OK;
    numbers.upto = newest;
    rc = store_once(store, read_numbers, &numbers, err);
    if (rc == ERR_OK)
        rc = walk(store, mark, &numbers.rows, err);
    *ret_more = rc == ERR_OK && numbers.rows.count == FEED_PAGE_MAX &&
                mark->safe >= numbers.after + FEED_PAGE_MAX;
    rows_done(&numbers.rows);
    return rc;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct feed_row {
    struct feed_event item;
    char from[STATE_TEXT_SIZE];
    char to[STATE_TEXT_SIZE];
    char condition[CONDITION_TEXT_SIZE];
};

struct read {
    const struct feed_page *page;
    struct rows rows;
};

static enum err_code add_event(struct read *read, struct feed_row *row, struct err *err)
{
    struct job_event *event = &row->item.event;
    enum err_code rc = state_of(row->to, &event->to, err);
    if (rc == ERR_OK && event->has_from)
        rc = state_of(row->from, &event->from, err);
    if (rc == ERR_OK)
        rc = condition_of(row->condition, &event->condition, err);
    return rc ? rc : rows_add(&read->rows, &row->item, err);
}

static enum err_code select_feed(struct txn *txn, const struct feed_page *page,
                                 struct feed_row *row, struct err *err)
{
    struct feed_event *item = &row->item;
    struct job_event *event = &item->event;
    const struct db_cols cols =
        DB_COLS(COL_U64(&event->seq), COL_UUID(&event->job), COL_I64(&event->at_us),
                COL_TEXT(event->kind), COL_TEXT_OR(row->from, &event->has_from), COL_TEXT(row->to),
                COL_TEXT(row->condition), COL_U32(&event->epoch), COL_U64(&event->fence),
                COL_UUID_OR(&event->worker, &event->has_worker), COL_TEXT(event->actor),
                COL_TEXT(event->detail), COL_TEXT(item->tenant), COL_TEXT(item->queue),
                COL_TEXT(item->name), COL_TEXT(item->owner));
    const struct db_arg after = db_u64(page->after);
    const struct db_arg upto = db_u64(page->upto);
    const struct db_arg limit = db_u64(page->limit);
    if (page->tenant)
        return db_select(txn->db, DB_FEED_READ_TENANT,
                         DB_ARGS(db_text(page->tenant), after, upto, limit), cols, err);
    return db_select(txn->db, DB_FEED_READ, DB_ARGS(after, upto, limit), cols, err);
}

static enum err_code read_feed(struct txn *txn, void *ctx, struct err *err)
{
    struct read *read = ctx;
    struct feed_row row = {0};
    bool more = true;
    rows_clear(&read->rows);
    enum err_code rc = select_feed(txn, read->page, &row, err);
    while (rc == ERR_OK && more) {
        rc = db_next(txn->db, &more, err);
        if (rc == ERR_OK && more)
            rc = add_event(read, &row, err);
    }
    db_end(txn->db);
    return rc;
}

enum err_code feed_read(struct store *store, const struct feed_page *page,
                        struct feed_list *ret_list, struct err *err)
{
    struct read read = {.page = page, .rows = ROWS_OF(struct feed_event)};
    enum err_code rc = store_once(store, read_feed, &read, err);
    if (rc == ERR_OK) {
        ret_list->count = read.rows.count;
        ret_list->items = rows_take(&read.rows);
    }
    rows_done(&read.rows);
    return rc;
}
