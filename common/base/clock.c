/* SPDX-License-Identifier: MIT */
#include "common/base/clock.h"

#include <errno.h>

static int64_t (*replaced_mono_us)(void);
static int64_t (*replaced_wall_us)(void);
static int64_t (*replaced_boot_us)(void);

static int64_t read_us(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t clock_mono_us(void)
{
    return replaced_mono_us ? replaced_mono_us() : read_us(CLOCK_MONOTONIC);
}

int64_t clock_mono_ms(void)
{
    return clock_mono_us() / 1000;
}

int64_t clock_boot_us(void)
{
    return replaced_boot_us ? replaced_boot_us() : read_us(CLOCK_BOOTTIME);
}

int64_t clock_boot_ms(void)
{
    return clock_boot_us() / 1000;
}

int64_t clock_wall_us(void)
{
    return replaced_wall_us ? replaced_wall_us() : read_us(CLOCK_REALTIME);
}

int64_t clock_wall_s(void)
{
    return clock_wall_us() / 1000000;
}

void clock_rfc3339(int64_t wall_us, char *ret_text)
{
    time_t seconds = (time_t)(wall_us / 1000000);
    int64_t rest_us = wall_us % 1000000;
    if (rest_us < 0) {
        rest_us += 1000000;
        seconds--;
    }
    struct tm utc;
    if (!gmtime_r(&seconds, &utc)) {
        (void)snprintf(ret_text, CLOCK_TEXT_SIZE, "-");
        return;
    }
    size_t used = strftime(ret_text, CLOCK_TEXT_SIZE, "%Y-%m-%dT%H:%M:%S", &utc);
    (void)snprintf(ret_text + used, CLOCK_TEXT_SIZE - used, ".%03dZ", (int)(rest_us / 1000));
}

/* count decimal digits at *at, moved past them; -1 if they are not there. */
static int digits(struct sv text, size_t *at, int count)
{
    int value = 0;
    for (int i = 0; i < count; i++, (*at)++) {
        if (*at >= text.len || text.ptr[*at] < '0' || text.ptr[*at] > '9')
            return -1;
        value = value * 10 + (text.ptr[*at] - '0');
    }
    return value;
}

static bool literal(struct sv text, size_t *at, char want)
{
    if (*at >= text.len || text.ptr[*at] != want)
        return false;
    (*at)++;
    return true;
}

static bool parse_fraction(struct sv text, size_t *at, int64_t *ret_us)
{
    *ret_us = 0;
    if (!literal(text, at, '.'))
        return true;
    int64_t unit = 100000;
    size_t start = *at;
    while (*at < text.len && text.ptr[*at] >= '0' && text.ptr[*at] <= '9') {
        *ret_us += (text.ptr[*at] - '0') * unit;
        unit /= 10;
        (*at)++;
    }
    return *at > start && *at - start <= 9;
}

static bool parse_offset(struct sv text, size_t *at, int64_t *ret_seconds)
{
    *ret_seconds = 0;
    if (literal(text, at, 'Z') || literal(text, at, 'z'))
        return true;
    int sign = literal(text, at, '+') ? 1 : literal(text, at, '-') ? -1 : 0;
    if (sign == 0)
        return false;
    int hours = digits(text, at, 2);
    if (!literal(text, at, ':'))
        return false;
    int minutes = digits(text, at, 2);
    *ret_seconds = sign * ((int64_t)hours * 3600 + (int64_t)minutes * 60);
    return hours >= 0 && hours < 24 && minutes >= 0 && minutes < 60;
}

bool clock_parse_rfc3339(struct sv text, int64_t *ret_wall_us)
{
    size_t at = 0;
    struct tm utc = {0};
    int64_t fraction_us = 0;
    int64_t offset_s = 0;
    utc.tm_year = digits(text, &at, 4) - 1900;
    bool ok = utc.tm_year >= 70 && literal(text, &at, '-');
    utc.tm_mon = digits(text, &at, 2) - 1;
    ok = ok && literal(text, &at, '-');
    utc.tm_mday = digits(text, &at, 2);
    ok = ok && (literal(text, &at, 'T') || literal(text, &at, 't'));
    utc.tm_hour = digits(text, &at, 2);
    ok = ok && literal(text, &at, ':');
    utc.tm_min = digits(text, &at, 2);
    ok = ok && literal(text, &at, ':');
    utc.tm_sec = digits(text, &at, 2);
    ok = ok && utc.tm_hour >= 0 && utc.tm_hour < 24 && utc.tm_min >= 0 && utc.tm_min < 60 &&
         utc.tm_sec >= 0 && utc.tm_sec <= 60;
    ok = ok && parse_fraction(text, &at, &fraction_us) && parse_offset(text, &at, &offset_s);
    if (!ok || at != text.len)
        return false;
    int day = utc.tm_mday;
    int month = utc.tm_mon;
    int second = utc.tm_sec;
    utc.tm_sec = 0;
    int64_t seconds = (int64_t)timegm(&utc) + second; /* timegm moves 31 February on: seen below */
    if (day != utc.tm_mday || month != utc.tm_mon)
        return false;
    *ret_wall_us = (seconds - offset_s) * 1000000 + fraction_us;
    return true;
}

void clock_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attributes;
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(cond, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

bool clock_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline_ms)
{
    struct timespec until = {
        .tv_sec = (time_t)(deadline_ms / 1000),
        .tv_nsec = (long)(deadline_ms % 1000) * 1000000,
    };
    return pthread_cond_timedwait(cond, mutex, &until) != ETIMEDOUT;
}

void clock_replace(int64_t (*mono_us)(void), int64_t (*wall_us)(void))
{
    replaced_mono_us = mono_us;
    replaced_wall_us = wall_us;
}

void clock_replace_boot(int64_t (*boot_us)(void))
{
    replaced_boot_us = boot_us;
}
