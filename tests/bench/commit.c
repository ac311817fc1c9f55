/* SPDX-License-Identifier: MIT */
/* commit PORT USER PASSWORD SCHEMA THREADS TRANSACTIONS ROWS: inserts rows of the size of a job,
 * ROWS per transaction; the limit of whatever promises something. */

#include <mysql.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROW_BYTES = 600, STATEMENT_MAX = 4 << 20, THREADS_MAX = 256 };

static char **arguments;
static atomic_long left;
static char *statement;

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "commit: %s\n", what);
    exit(1);
}

static MYSQL *open_link(void)
{
    MYSQL *link = mysql_init(NULL);
    if (!link || !mysql_real_connect(link, "127.0.0.1", arguments[2], arguments[3], arguments[4],
                                     (unsigned)strtoul(arguments[1], NULL, 10), NULL, 0))
        die(link ? mysql_error(link) : "no memory");
    return link;
}

static void run(MYSQL *link, const char *text)
{
    if (mysql_query(link, text) != 0)
        die(mysql_error(link));
}

static void *commit_main(void *arg)
{
    MYSQL *link = arg;
    (void)mysql_thread_init();
    while (atomic_fetch_sub(&left, 1) > 0)
        run(link, statement);
    mysql_thread_end();
    return NULL;
}

static void make_statement(long rows)
{
    statement = malloc(STATEMENT_MAX);
    if (!statement || rows < 1 || rows * (ROW_BYTES + 8) + 100 > STATEMENT_MAX)
        die("too many rows");
    char *at = statement + snprintf(statement, 100, "INSERT INTO bench_commit (body) VALUES ");
    for (long row = 0; row < rows; row++) {
        *at++ = row > 0 ? ',' : ' ';
        *at++ = '(';
        *at++ = '\'';
        memset(at, 'x', ROW_BYTES);
        at += ROW_BYTES;
        *at++ = '\'';
        *at++ = ')';
    }
    *at = '\0';
}

int main(int argc, char **argv)
{
    if (argc != 8) {
        fprintf(stderr, "usage: commit PORT USER PASSWORD SCHEMA THREADS TRANSACTIONS ROWS\n");
        return 2;
    }
    long threads = strtol(argv[5], NULL, 10), count = strtol(argv[6], NULL, 10);
    long rows = strtol(argv[7], NULL, 10);
    static pthread_t thread[THREADS_MAX];
    static MYSQL *link[THREADS_MAX];
    struct timespec from, to;

    arguments = argv;
    if (threads < 1 || threads > THREADS_MAX || mysql_library_init(0, NULL, NULL) != 0)
        die("too many threads");
    make_statement(rows);
    for (long i = 0; i < threads; i++)
        link[i] = open_link();
    run(link[0], "CREATE OR REPLACE TABLE bench_commit (id BIGINT AUTO_INCREMENT PRIMARY KEY, "
                 "body VARCHAR(1000)) ENGINE=InnoDB");
    atomic_store(&left, count);
    (void)clock_gettime(CLOCK_MONOTONIC, &from);
    for (long i = 0; i < threads; i++)
        if (pthread_create(&thread[i], NULL, commit_main, link[i]) != 0)
            die("no thread");
    for (long i = 0; i < threads; i++)
        (void)pthread_join(thread[i], NULL);
    (void)clock_gettime(CLOCK_MONOTONIC, &to);
    double seconds = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
    run(link[0], "DROP TABLE bench_commit");
    printf("{\"per_s\":%.1f,\"rows_per_s\":%.1f}\n", (double)count / seconds,
           (double)(count * rows) / seconds);
    for (long i = 0; i < threads; i++)
        mysql_close(link[i]);
    free(statement);
    mysql_library_end();
    return 0;
}
