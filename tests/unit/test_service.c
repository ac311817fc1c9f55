/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"

#include "common/base/clock.h"
#include "common/service/metrics.h"
#include "common/service/monitor.h"
#include "common/service/watchdog.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

static struct metric ended = METRIC_COUNTER_BY("t_ended_total", "Ended.", "outcome", "good", "bad");
static struct metric took = METRIC_HISTOGRAM("t_took_seconds", "Took.");

static void metrics_are_written_as_prometheus_reads_them(void **unused)
{
    (void)unused;
    BUF_AUTO struct buf text = BUF_INIT(100000);
    metrics_add(&ended);
    metrics_add(&took);
    metrics_add(&ended);
    metric_count(&ended, 1, 3);
    metric_observe_us(&took, 50);
    metric_observe_us(&took, 1000000);
    metric_observe_us(&took, 99000000);
    assert_true(metrics_write(&text, "test"));
    assert_non_null(strstr(buf_text(&text), "t_ended_total{outcome=\"bad\"} 3\n"));
    assert_non_null(strstr(buf_text(&text), "t_took_seconds_bucket{le=\"0.0001\"} 1\n"));
    assert_non_null(strstr(buf_text(&text), "t_took_seconds_bucket{le=\"+Inf\"} 3\n"));
    assert_non_null(strstr(buf_text(&text), "t_took_seconds_count 3\n"));
    const char *first = strstr(buf_text(&text), "# TYPE t_ended_total");
    assert_null(strstr(first + 1, "# TYPE t_ended_total"));
}

static int64_t now_us;

static int64_t our_clock(void)
{
    return now_us;
}

static void the_watchdog_is_told_only_while_every_loop_keeps_its_word(void **unused)
{
    (void)unused;
    struct watchdog_loop quick = {.name = "quick"};
    struct watchdog_loop slow = {.name = "slow"};
    clock_replace(our_clock, NULL);
    assert_true(watchdog_look());
    watchdog_turn(&quick, 100);
    watchdog_turn(&slow, 1000);
    now_us = 100 * 1000;
    assert_true(watchdog_look());
    now_us = 101 * 1000;
    assert_false(watchdog_look());
    watchdog_turn(&quick, 100);
    assert_true(watchdog_look());
    watchdog_rest(&quick); /* it waits for something */
    now_us = 1000 * 1000;
    assert_true(watchdog_look());
    now_us = 2000 * 1000;
    assert_false(watchdog_look());
    watchdog_leave(&slow);
    assert_true(watchdog_look());
    watchdog_leave(&quick);
    watchdog_leave(&quick);
    clock_replace(NULL, NULL);
}

static bool not_ready(void *arg, struct buf *reasons)
{
    (void)arg;
    return !buf_add_text(reasons, "\"database\":false");
}

static void get(uint16_t port, const char *request, char *ret_answer, size_t size)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    FD_AUTO int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    assert_true(write(fd, request, strlen(request)) > 0);
    size_t used = 0;
    ssize_t got = 0;
    while (used + 1 < size && (got = read(fd, ret_answer + used, size - 1 - used)) > 0)
        used += (size_t)got;
    ret_answer[used] = 0;
}

static void readiness_is_told_with_its_reason(void **unused)
{
    (void)unused;
    struct err err = {0};
    struct monitor_config cfg = {.service = "test", .listen = "127.0.0.1", .ready = not_ready};
    AUTO(monitor_stop) struct monitor *monitor = NULL;
    char text[65536];
    assert_ok(monitor_start(&cfg, &monitor, &err));
    get(monitor_port(monitor), "GET /readyz HTTP/1.0\r\n\r\n", text, sizeof(text));
    assert_non_null(strstr(text, " 503 "));
    assert_non_null(strstr(text, "{\"ready\":false,\"database\":false}"));
    get(monitor_port(monitor), "GET /metrics HTTP/1.0\r\n\r\n", text, sizeof(text));
    assert_non_null(strstr(text, "sluice_build_info{service=\"test\""));
    get(monitor_port(monitor), "POST /livez HTTP/1.0\r\nContent-Length: 0\r\n\r\n", text,
        sizeof(text));
    assert_non_null(strstr(text, " 405 "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(metrics_are_written_as_prometheus_reads_them),
        TEST(readiness_is_told_with_its_reason),
        TEST(the_watchdog_is_told_only_while_every_loop_keeps_its_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
