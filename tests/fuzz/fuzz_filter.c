/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"

#include "common/filter/filter.h"
#include "common/filter/filter_sql.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/filter_row.h"

/* Input: one filter, or two with a line between them that is "--" alone. Beyond not crashing: what
 * the reports and filter_covers() promise must be true of every row that we try. */

#define ROWS 3
#define SQL_MAX 200000
/* The sample, nothing but NULLs, and small values. */
static struct filter_row row_at(int index)
{
    static const struct filter_value nulls[FILTER_JOB_ATTR_COUNT];
    static struct filter_value small[FILTER_JOB_ATTR_COUNT];
    static const struct sv tags[] = {{"a", 1}};
    struct filter_row row = filter_row_sample();
    if (index == 1)
        row = (struct filter_row){.values = nulls};
    if (index != 2)
        return row;
    for (size_t i = 0; i < FILTER_JOB_ATTR_COUNT; i++) {
        small[i].type = filter_job_schema.attrs[i].type;
        if (small[i].type == FILTER_STRING)
            small[i].text = SV("a");
        if (small[i].type == FILTER_LIST) {
            small[i].list.items = tags;
            small[i].list.count = ARRAY_LEN(tags);
        }
    }
    return (struct filter_row){.values = small, .env = filter_row_env};
}

static void check_report(const struct filter *f, const struct filter_report *report)
{
    for (int i = 0; i < ROWS; i++) {
        struct filter_row row = row_at(i);
        enum filter_truth truth = filter_eval(f, &row);
        MUST(!report->always_true || truth == FILTER_TRUE);
        MUST(!report->never_true || truth != FILTER_TRUE);
        for (size_t use = 0; use < filter_use_count(f); use++) {
            MUST(filter_use_at(f, use).name.len > 0);
            (void)filter_use_value(f, use, &row);
        }
    }
}

static void check_sql(const struct filter *f)
{
    static const char *columns[FILTER_JOB_ATTR_COUNT];
    struct filter_columns where = {columns, "e", "$.env"};
    struct err err = {0};
    BUF_AUTO struct buf sql = BUF_INIT(SQL_MAX);
    FILTER_PARAMS_AUTO struct filter_params params = {0};
    for (size_t i = 0; i < ARRAY_LEN(columns); i++)
        columns[i] = "c";
    MUST(filter_to_sql(f, &where, &sql, &params, &err) == ERR_OK);
    size_t placeholders = 0;
    for (size_t i = 0; i < sql.len; i++)
        placeholders += sql.ptr[i] == '?';
    MUST(placeholders == params.count);
}

static struct filter *compiled(struct sv text)
{
    struct filter *f = NULL;
    struct filter_report report;
    struct err err = {0};
    if (filter_compile(&filter_job_schema, text, &f, &report, &err)) {
        MUST(err.code == ERR_FILTER && err.text[0] && !f);
        MUST(report.place.position <= text.len);
        MUST(sv_is_utf8(sv_of(report.picture)));
        return NULL;
    }
    check_report(f, &report);
    check_sql(f);
    return f;
}

static void check_covers(const struct filter *earlier, const struct filter *later)
{
    MUST(filter_covers(earlier, earlier));
    if (!filter_covers(earlier, later))
        return;
    for (int i = 0; i < ROWS; i++) {
        struct filter_row row = row_at(i);
        MUST(filter_eval(later, &row) != FILTER_TRUE || filter_eval(earlier, &row) == FILTER_TRUE);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char separator[] = "\n--\n";
    struct sv first = {(const char *)bytes, size};
    const char *cut = size ? memmem(bytes, size, separator, strlen(separator)) : NULL;
    AUTO(filter_free) struct filter *earlier = NULL;
    AUTO(filter_free) struct filter *later = NULL;
    if (cut) {
        first.len = (size_t)(cut - first.ptr);
        const char *rest = cut + strlen(separator);
        later = compiled((struct sv){rest, size - first.len - strlen(separator)});
    }
    earlier = compiled(first);
    if (earlier && later)
        check_covers(earlier, later);
    return 0;
}
