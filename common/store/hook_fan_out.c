/* SPDX-License-Identifier: MIT */
#include "common/store/hook_lead.h"
#include "common/store/reading.h"

#define FAN_OUT_ROWS 256  /* more than one event can have */
#define FAN_OUT_SPAN 5000 /* of events looked through at once; fewer when each is for many */
#define BODY_LIMIT 16384
_Static_assert(HOOK_PER_TENANT_MAX + HOOK_PER_JOB_MAX < FAN_OUT_ROWS, "one event always fits");

struct fanning {
    const struct hook_lead *lead;
    struct hook_fan_out *out;
    uint64_t span;
    struct rows rows; /* hook_event */
};

#define EVENT_ROW_COLS(row)                                                                        \
    DB_COLS(COL_U64(&(row)->seq), COL_UUID(&(row)->hook), COL_TEXT((row)->hook_name),              \
            COL_UUID(&(row)->lane), COL_UUID(&(row)->job), COL_TEXT((row)->tenant),                \
            COL_I64(&(row)->at_us), COL_TEXT((row)->kind), COL_TEXT((row)->from),                  \
            COL_TEXT((row)->to), COL_TEXT((row)->condition), COL_TEXT((row)->detail),              \
            COL_TEXT((row)->name), COL_TEXT((row)->owner), COL_TEXT((row)->queue),                 \
            COL_I32_OR(&(row)->exit_code, &(row)->has_exit_code), COL_I32(&(row)->term_signal),    \
            COL_TEXT((row)->reason))

static enum err_code read_events(struct txn *txn, struct fanning *fanning, uint64_t after,
                                 uint64_t upto, struct err *err)
{
    struct hook_event row = {.seq = 0};
    const struct db_arg from = db_u64(after);
    const struct db_arg to = db_u64(upto);
    struct reading reading = {.stmt = DB_HOOK_FAN_OUT,
                              .args = DB_ARGS(from, to, from, to, db_u64(FAN_OUT_ROWS)),
                              .cols = EVENT_ROW_COLS(&row),
                              .row = &row,
                              .rows = &fanning->rows};
    rows_clear(&fanning->rows);
    return read_rows(txn->db, &reading, err);
}

static enum err_code make_delivery(struct txn *txn, const struct hook_fan_out *out,
                                   const struct hook_event *event, struct err *err)
{
    BUF_AUTO struct buf body = BUF_INIT(BODY_LIMIT);
    struct uuid id = uuid_v7();
    bool waits = false;
    bool found = false;
    enum err_code rc =
        db_one(txn->db, DB_DELIVERY_CHAIN, DB_ARGS(db_uuid(&event->hook), db_uuid(&event->job)),
               DB_COLS(COL_BOOL(&waits)), &found, err);
    if (rc)
        return rc;
    out->compose(event, &id, &body);
    if (body.failed)
        return err_set(err, ERR_NOMEM, "no memory for a delivery");
    return db_exec(txn->db, DB_DELIVERY_INSERT,
                   DB_ARGS(db_uuid(&id), db_uuid(&event->hook), db_text(event->tenant),
                           db_uuid(&event->job), db_u64(event->seq), db_text(event->to),
                           db_uuid(&event->lane), db_text(waits ? "held" : "due"),
                           db_sv(buf_sv(&body))),
                   NULL, err);
}

/* All of the events that were read but those of the last number, of which some may be missing. */
static size_t whole_events(const struct rows *rows, uint64_t *seq)
{
    const struct hook_event *events = rows->items;
    size_t count = rows->count;
    if (count < FAN_OUT_ROWS)
        return count;
    uint64_t last = events[count - 1].seq;
    while (count > 0 && events[count - 1].seq == last)
        count--;
    *seq = last - 1;
    return count;
}

/* What is read and not used is read again, so the next one reads what was used this time. */
static uint64_t next_span(const struct fanning *fanning, uint64_t from)
{
    if (fanning->rows.count == FAN_OUT_ROWS)
        return fanning->out->seq - from;
    return fanning->span * 2 < FAN_OUT_SPAN ? fanning->span * 2 : FAN_OUT_SPAN;
}

static enum err_code fan_out(struct txn *txn, void *ctx, struct err *err)
{
    struct fanning *fanning = ctx;
    struct hook_fan_out *out = fanning->out;
    uint64_t seq = 0;
    bool found = false;
    bool wanted = false;
    enum err_code rc = hook_lead_lock(txn, fanning->lead, &seq, err);
    if (rc == ERR_OK)
        rc = db_one(txn->db, DB_HOOK_ANY, DB_NO_ARGS, DB_COLS(COL_BOOL(&wanted)), &found, err);
    if (rc)
        return rc;
    out->deliveries = 0;
    out->seq = wanted && out->upto > seq + fanning->span ? seq + fanning->span : out->upto;
    if (out->seq <= seq) { /* an earlier try was committed after all */
        out->seq = seq;
        return ERR_OK;
    }
    rc = wanted ? read_events(txn, fanning, seq, out->seq, err) : ERR_OK;
    if (rc)
        return rc;
    size_t count = wanted ? whole_events(&fanning->rows, &out->seq) : 0;
    const struct hook_event *events = fanning->rows.items;
    out->span = next_span(fanning, seq);
    for (size_t i = 0; i < count && rc == ERR_OK; i++)
        rc = make_delivery(txn, out, &events[i], err);
    out->deliveries = count;
    return rc ? rc : db_exec(txn->db, DB_SENDER_SEQ, DB_ARGS(db_u64(out->seq)), NULL, err);
}

enum err_code hook_fan_out(struct store *store, const struct hook_lead *lead,
                           struct hook_fan_out *out, struct err *err)
{
    struct fanning fanning = {.lead = lead,
                              .out = out,
                              .span = out->span ? out->span : FAN_OUT_SPAN,
                              .rows = ROWS_OF(struct hook_event)};
    enum err_code rc = store_txn(store, fan_out, &fanning, err);
    rows_done(&fanning.rows);
    return rc;
}
