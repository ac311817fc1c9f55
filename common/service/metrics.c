/* SPDX-License-Identifier: MIT */
#include "common/service/metrics.h"

#include "common/base/clock.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

static struct metric *all;
static struct metric **end_of_all = &all;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int64_t started_us;

void metrics_add(struct metric *metric)
{
    pthread_mutex_lock(&mutex);
    if (started_us == 0)
        started_us = clock_wall_us();
    if (!metric->next && end_of_all != &metric->next) {
        *end_of_all = metric;
        end_of_all = &metric->next;
    }
    pthread_mutex_unlock(&mutex);
}

void metric_count(struct metric *metric, size_t value, int64_t n)
{
    if (value < METRIC_LABELS_MAX)
        atomic_fetch_add_explicit(&metric->counts[value], n, memory_order_relaxed);
}

void metric_set(struct metric *metric, int64_t value)
{
    atomic_store_explicit(&metric->counts[0], value, memory_order_relaxed);
}

static int64_t bucket_bound_us(size_t bucket)
{
    return (int64_t)100 << bucket;
}

void metric_observe_us(struct metric *metric, int64_t us)
{
    size_t bucket = 0;
    while (bucket < METRIC_BUCKETS && us > bucket_bound_us(bucket))
        bucket++;
    atomic_fetch_add_explicit(&metric->counts[bucket], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&metric->sum_us, us, memory_order_relaxed);
}

int64_t metric_value(const struct metric *metric, size_t value)
{
    return atomic_load_explicit(&metric->counts[value], memory_order_relaxed);
}

static void write_histogram(struct buf *out, const struct metric *metric)
{
    int64_t total = 0;
    for (size_t i = 0; i < METRIC_BUCKETS; i++) {
        total += metric_value(metric, i);
        buf_addf(out, "%s_bucket{le=\"%g\"} %lld\n", metric->name, (double)bucket_bound_us(i) / 1e6,
                 (long long)total);
    }
    total += metric_value(metric, METRIC_BUCKETS);
    buf_addf(out, "%s_bucket{le=\"+Inf\"} %lld\n%s_sum %.6f\n%s_count %lld\n", metric->name,
             (long long)total, metric->name,
             (double)atomic_load_explicit(&metric->sum_us, memory_order_relaxed) / 1e6,
             metric->name, (long long)total);
}

static void write_metric(struct buf *out, const struct metric *metric)
{
    static const char *const types[] = {"counter", "gauge", "histogram"};
    buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", metric->name, metric->help, metric->name,
             types[metric->type]);
    if (metric->type == METRIC_IS_HISTOGRAM) {
        write_histogram(out, metric);
        return;
    }
    if (!metric->label) {
        int64_t value = metric->read ? metric->read(metric->arg) : metric_value(metric, 0);
        buf_addf(out, "%s %lld\n", metric->name, (long long)value);
        return;
    }
    for (size_t i = 0; i < METRIC_LABELS_MAX && metric->values[i]; i++)
        buf_addf(out, "%s{%s=\"%s\"} %lld\n", metric->name, metric->label, metric->values[i],
                 (long long)metric_value(metric, i));
}

/* Second number of /proc/self/statm (proc(5)): resident pages. */
static long resident_bytes(void)
{
    char text[128] = "";
    long pages = 0;
    FD_AUTO int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (got > 0) {
        text[got] = 0;
        const char *blank = strchr(text, ' ');
        pages = blank ? strtol(blank, NULL, 10) : 0;
    }
    return pages * sysconf(_SC_PAGESIZE);
}

bool metrics_write(struct buf *out, const char *service)
{
    buf_addf(out,
             "# HELP sluice_build_info The version of the program that answers.\n"
             "# TYPE sluice_build_info gauge\n"
             "sluice_build_info{service=\"%s\",version=\"%s\"} 1\n",
             service, SLUICE_VERSION);
    buf_addf(out,
             "# HELP process_start_time_seconds When the process started.\n"
             "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %.3f\n"
             "# HELP process_resident_memory_bytes Resident memory.\n"
             "# TYPE process_resident_memory_bytes gauge\nprocess_resident_memory_bytes %ld\n",
             (double)started_us / 1e6, resident_bytes());
    for (const struct metric *metric = all; metric; metric = metric->next)
        write_metric(out, metric);
    return !out->failed;
}
