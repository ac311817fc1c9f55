/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SERVICE_METRICS_H
#define COMMON_SERVICE_METRICS_H

/* metrics: counters, gauges and histograms, written in Prometheus' text format 0.0.4. A program
 * lists its metrics in one static table; a metric with a label lists the label's values, so that
 * a scrape is bounded and no job, user or path ever becomes a label.
 *
 *   static struct metric submit = METRIC_HISTOGRAM("sluice_submit_seconds", "Time to commit ...");
 *   static struct metric outcomes = METRIC_COUNTER_BY("sluice_jobs_ended_total", "...", "outcome",
 *                                                     "finished", "failed", "cancelled");
 *   metrics_add(&submit);  metric_observe_us(&submit, 1234);  metric_count(&outcomes, 1, 1);
 *
 * Threads: any (atomics; metrics_add before other threads start). Memory: static. */

#include "common/base/buf.h"

#include <stdatomic.h>

#define METRIC_LABELS_MAX 16
#define METRIC_BUCKETS 18 /* 100 us doubling to 13 s, and infinity */

struct metric {
    const char *name;
    const char *help;
    enum { METRIC_IS_COUNTER, METRIC_IS_GAUGE, METRIC_IS_HISTOGRAM } type;
    const char *label;
    const char *values[METRIC_LABELS_MAX];
    _Atomic int64_t counts[METRIC_BUCKETS + 1]; /* by label value, or by bucket */
    _Atomic int64_t sum_us;
    int64_t (*read)(void *arg); /* what is computed when scraped; may be NULL */
    void *arg;
    struct metric *next;
};

#define METRIC_COUNTER(n, h)                                                                       \
    {                                                                                              \
        .name = (n), .help = (h), .type = METRIC_IS_COUNTER                                        \
    }
#define METRIC_COUNTER_BY(n, h, l, ...)                                                            \
    {                                                                                              \
        .name = (n), .help = (h), .type = METRIC_IS_COUNTER, .label = (l), .values = {             \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define METRIC_GAUGE(n, h)                                                                         \
    {                                                                                              \
        .name = (n), .help = (h), .type = METRIC_IS_GAUGE                                          \
    }
#define METRIC_GAUGE_OF(n, h, f)                                                                   \
    {                                                                                              \
        .name = (n), .help = (h), .type = METRIC_IS_GAUGE, .read = (f)                             \
    }
#define METRIC_COUNTER_OF(n, h, f)                                                                 \
    {                                                                                              \
        .name = (n), .help = (h), .type = METRIC_IS_COUNTER, .read = (f)                           \
    }
#define METRIC_HISTOGRAM(n, h)                                                                     \
    {                                                                                              \
        .name = (n), .help = (h), .type = METRIC_IS_HISTOGRAM                                      \
    }

void metrics_add(struct metric *metric); /* once; a second time does nothing */
/* Adds n to the value with index `value` of a labelled counter (0 for one without label). */
void metric_count(struct metric *metric, size_t value, int64_t n);
void metric_set(struct metric *metric, int64_t value); /* gauge */
void metric_observe_us(struct metric *metric, int64_t us);
int64_t metric_value(const struct metric *metric, size_t value);
/* All metrics, and sluice_build_info and the process's start time and resident size. */
bool metrics_write(struct buf *out, const char *service);

#endif
