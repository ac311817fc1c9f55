/* SPDX-License-Identifier: MIT */
#include "webapp/filter_view.h"

#include "webapp/job_view.h"
#include "webapp/problem.h"

void reply_filter_problem(struct request *req, const struct err *err,
                          const struct filter_report *report)
{
    json_t *problem = problem_of(err, req->uri.raw, req->uri.path_length, req->id);
    json_object_set_new(problem, "position",
                        json_pack("{s:I,s:I,s:I}", "offset", (json_int_t)report->place.position,
                                  "line", (json_int_t)report->place.line, "column",
                                  (json_int_t)report->place.column));
    json_object_set_new(problem, "caret", problem_text(report->picture, strlen(report->picture)));
    reply_problem(req, err, problem);
}

json_t *filter_warnings_view(const struct filter_report *report)
{
    json_t *list = json_array();
    for (size_t i = 0; i < report->warning_count; i++)
        json_array_append_new(list, view_text(report->warnings[i].text));
    return list;
}

static json_t *list_view(const struct filter_value *value)
{
    json_t *list = json_array();
    for (size_t i = 0; i < value->list.count; i++)
        json_array_append_new(list,
                              problem_text(value->list.items[i].ptr, value->list.items[i].len));
    return list;
}

json_t *filter_value_view(const struct filter_value *value)
{
    switch (value->type) {
    case FILTER_NULL:
        break;
    case FILTER_STRING:
        return problem_text(value->text.ptr, value->text.len);
    case FILTER_NUMBER:
        return value->is_real ? json_real(value->real) : json_integer(value->integer);
    case FILTER_BOOL:
        return json_boolean(value->truth);
    case FILTER_LIST:
        return list_view(value);
    case FILTER_TIME:
        return view_time(value->integer);
    }
    return json_null();
}

const char *filter_truth_text(enum filter_truth truth)
{
    switch (truth) {
    case FILTER_TRUE:
        return "TRUE";
    case FILTER_FALSE:
        return "FALSE";
    case FILTER_UNKNOWN:
        break;
    }
    return "UNKNOWN";
}
