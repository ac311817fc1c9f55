/* SPDX-License-Identifier: MIT */
/* load: HTTP requests over keep-alive connections, one thread each, and how long the answers took.
 *
 * Closed loop (--count or --seconds): each connection sends as soon as its answer is there. Open
 * loop (--rate with --seconds): request i is due at start + i / rate, whichever connection is free
 * sends it, and its time counts from when it was due, so that a service that falls behind shows.
 *
 * The body file may hold @NUMBER@, which becomes the request's number in eight digits. A line of
 * the tokens file is the token of a connection. --log FILE: a line per request, "number due sent
 * answered status id", times in ns of CLOCK_MONOTONIC. The report goes to stdout as JSON. */

#include "tests/bench/load_link.h"

#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { RECORDS_MAX = 4 * 1000 * 1000, CONNECTIONS_MAX = 1024, STATUS_MAX = 600 };

struct load {
    struct load_target target;
    const char *log_path;
    char **tokens;
    size_t token_count;
    unsigned connections;
    uint64_t count;   /* requests; 0: until the time is over */
    uint64_t first;   /* number of the first one */
    double rate;      /* per second; 0: closed loop */
    double seconds;   /* 0: until the count is reached */
    int64_t start_ns; /* of the run */
    pthread_barrier_t ready;
    atomic_uint_fast64_t next;
    struct load_record *records;
    uint64_t record_max;
};

struct client {
    struct load *load;
    const char *token;
    pthread_t thread;
};

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "load: %s\n", what);
    exit(1);
}

int64_t load_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void sleep_until(int64_t due_ns)
{
    struct timespec due = {.tv_sec = due_ns / 1000000000, .tv_nsec = due_ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) != 0) {
    }
}

/* Takes the next request; false: the run is over. Waits until it is due. */
static bool take(struct load *load, uint64_t *ret_index, int64_t *ret_due_ns)
{
    uint64_t index = atomic_fetch_add(&load->next, 1);
    if (index >= load->record_max || (load->count > 0 && index >= load->count))
        return false;
    int64_t due = load_now_ns();
    int64_t end = load->start_ns + (int64_t)(load->seconds * 1e9);
    if (load->rate > 0) {
        due = load->start_ns + (int64_t)((double)index / load->rate * 1e9);
        if (due < end)
            sleep_until(due);
    }
    if (load->seconds > 0 && due >= end)
        return false;
    *ret_index = index;
    *ret_due_ns = due;
    return true;
}

static void *client_main(void *arg)
{
    struct client *self = arg;
    struct load *load = self->load;
    struct load_link *link = load_link_new(&load->target, self->token);
    uint64_t index = 0;
    int64_t due = 0;

    if (!link)
        die("no memory or no connection");
    (void)pthread_barrier_wait(&load->ready);
    (void)pthread_barrier_wait(&load->ready); /* the start is set in between */
    while (take(load, &index, &due)) {
        struct load_record *record = &load->records[index];
        record->due_ns = due;
        load_link_call(link, load->first + index, record);
    }
    load_link_free(link);
    return NULL;
}

static char *read_file(const char *path, size_t *ret_size)
{
    FILE *in = fopen(path, "rbe");
    size_t room = 1 << 20;
    char *text = malloc(room + 1);
    if (!in || !text)
        die(path);
    *ret_size = fread(text, 1, room, in);
    text[*ret_size] = '\0';
    (void)fclose(in);
    return text;
}

static void read_tokens(struct load *load, const char *path)
{
    size_t size = 0;
    char *save = NULL;
    load->tokens = calloc(CONNECTIONS_MAX, sizeof(*load->tokens));
    if (!load->tokens)
        die("no memory");
    char *text = read_file(path, &size); /* the tokens point into it */
    for (char *line = strtok_r(text, "\n", &save); line && load->token_count < CONNECTIONS_MAX;
         line = strtok_r(NULL, "\n", &save))
        load->tokens[load->token_count++] = line;
}

static int by_value(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static double at_ms(const int64_t *sorted, uint64_t count, double share)
{
    if (count == 0)
        return 0;
    uint64_t at = (uint64_t)(share * (double)count);
    return (double)sorted[at < count ? at : count - 1] / 1e6;
}

static void print_statuses(const struct load *load, uint64_t done)
{
    static uint64_t seen[STATUS_MAX];
    const char *comma = "";
    for (uint64_t i = 0; i < done; i++)
        seen[load->records[i].status < STATUS_MAX ? load->records[i].status : 0]++;
    printf("\"statuses\":{");
    for (unsigned status = 0; status < STATUS_MAX; status++) {
        if (seen[status] == 0)
            continue;
        printf("%s\"%u\":%" PRIu64, comma, status, seen[status]);
        comma = ",";
    }
    printf("}}\n");
}

/* Requests that were taken but not sent (the time was over) are at the end. */
static uint64_t sent_count(const struct load *load)
{
    uint64_t taken = atomic_load(&load->next);
    uint64_t done = taken < load->record_max ? taken : load->record_max;
    while (done > 0 && load->records[done - 1].due_ns == 0)
        done--;
    return done;
}

static void report(const struct load *load)
{
    uint64_t done = sent_count(load);
    int64_t *times = calloc(done + 1, sizeof(*times));
    int64_t last = load->start_ns;
    struct rusage used = {0};

    if (!times)
        die("no memory");
    for (uint64_t i = 0; i < done; i++) {
        times[i] = load->records[i].done_ns - load->records[i].due_ns;
        if (load->records[i].done_ns > last)
            last = load->records[i].done_ns;
    }
    qsort(times, done, sizeof(*times), by_value);
    (void)getrusage(RUSAGE_SELF, &used);
    double cpu = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                 (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
    printf("{\"requests\":%" PRIu64 ",\"seconds\":%.6f,\"start_ns\":%" PRId64 ",\"cpu_s\":%.3f,",
           done, (double)(last - load->start_ns) / 1e9, load->start_ns, cpu);
    printf("\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.3f,", at_ms(times, done, 0.5),
           at_ms(times, done, 0.99), at_ms(times, done, 1));
    print_statuses(load, done);
    free(times);
}

static void write_log(const struct load *load)
{
    uint64_t done = sent_count(load);
    FILE *out = fopen(load->log_path, "we");
    if (!out)
        die(load->log_path);
    for (uint64_t i = 0; i < done; i++) {
        const struct load_record *record = &load->records[i];
        fprintf(out, "%" PRIu64 " %" PRId64 " %" PRId64 " %" PRId64 " %u %s\n", load->first + i,
                record->due_ns, record->sent_ns, record->done_ns, record->status,
                record->id[0] ? record->id : "-");
    }
    if (fclose(out) != 0)
        die(load->log_path);
}

static double number(const char *text)
{
    char *end = NULL;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || value < 0)
        die("a number is expected");
    return value;
}

static void read_option(struct load *load, int option, char *value)
{
    switch (option) {
    case 'p':
        load->target.port = (uint16_t)number(value);
        break;
    case 'm':
        load->target.method = value;
        break;
    case 'u':
        load->target.path = value;
        break;
    case 't':
        read_tokens(load, value);
        break;
    case 'b':
        load->target.body = read_file(value, &load->target.body_size);
        break;
    case 'c':
        load->connections = (unsigned)number(value);
        break;
    case 'n':
        load->count = (uint64_t)number(value);
        break;
    case 'f':
        load->first = (uint64_t)number(value);
        break;
    case 'r':
        load->rate = number(value);
        break;
    case 's':
        load->seconds = number(value);
        break;
    case 'l':
        load->log_path = value;
        break;
    default:
        die("unknown option");
    }
}

static void read_options(struct load *load, int argc, char **argv)
{
    static const struct option names[] = {
        {"port", required_argument, NULL, 'p'},  {"method", required_argument, NULL, 'm'},
        {"path", required_argument, NULL, 'u'},  {"tokens", required_argument, NULL, 't'},
        {"body", required_argument, NULL, 'b'},  {"connections", required_argument, NULL, 'c'},
        {"count", required_argument, NULL, 'n'}, {"first", required_argument, NULL, 'f'},
        {"rate", required_argument, NULL, 'r'},  {"seconds", required_argument, NULL, 's'},
        {"log", required_argument, NULL, 'l'},   {NULL, 0, NULL, 0},
    };
    int option = 0;
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1)
        read_option(load, option, optarg);
    if (load->target.port == 0 || load->connections == 0 || load->connections > CONNECTIONS_MAX)
        die("--port and --connections (1 to 1024) are needed");
    if (load->count == 0 && load->seconds <= 0)
        die("--count or --seconds is needed");
    if (load->rate > 0 && load->seconds <= 0)
        load->seconds = (double)load->count / load->rate + 1;
}

static void run(struct load *load)
{
    struct client *clients = calloc(load->connections, sizeof(*clients));
    if (!clients || pthread_barrier_init(&load->ready, NULL, load->connections + 1) != 0)
        die("no memory");
    for (unsigned i = 0; i < load->connections; i++) {
        clients[i].load = load;
        if (load->token_count > 0)
            clients[i].token = load->tokens[i % load->token_count];
        if (pthread_create(&clients[i].thread, NULL, client_main, &clients[i]) != 0)
            die("no thread");
    }
    (void)pthread_barrier_wait(&load->ready);
    load->start_ns = load_now_ns();
    (void)pthread_barrier_wait(&load->ready);
    for (unsigned i = 0; i < load->connections; i++)
        (void)pthread_join(clients[i].thread, NULL);
    free(clients);
}

int main(int argc, char **argv)
{
    static struct load load = {.target = {.method = "POST", .path = "/v1/jobs"}};

    read_options(&load, argc, argv);
    load.record_max = load.count > 0 && load.count < RECORDS_MAX ? load.count : RECORDS_MAX;
    load.records = calloc(load.record_max, sizeof(*load.records));
    if (!load.records)
        die("no memory");
    run(&load);
    if (load.log_path)
        write_log(&load);
    report(&load);
    return 0;
}
