/* SPDX-License-Identifier: MIT */
#include "webapp/listen_impl.h"

#include "tests/support/test.h"

static struct feed_event event_of(uint64_t seq)
{
    struct feed_event event = {.event = {.seq = seq, .to = JOB_RUNNING}};
    (void)snprintf(event.tenant, sizeof(event.tenant), "acme");
    (void)snprintf(event.queue, sizeof(event.queue), "large");
    (void)snprintf(event.event.kind, sizeof(event.event.kind), "claimed");
    return event;
}

static void fill(struct ring *ring, uint64_t first, uint64_t last)
{
    for (uint64_t seq = first; seq <= last; seq++) {
        struct feed_event event = event_of(seq);
        assert_true(ring_add(ring, &event));
    }
}

/* ---- the ring -------------------------------------------------------------------------------- */

static void a_ring_gives_the_events_behind_a_number(void **unused)
{
    (void)unused;
    struct ring ring = {.tail = 9};
    fill(&ring, 10, 12);
    assert_int_equal(ring_after(&ring, 9), 0);
    assert_int_equal(ring_after(&ring, 10), 1);
    assert_int_equal(ring_at(&ring, 1)->seq, 11);
    assert_int_equal(ring_after(&ring, 12), ring.count);
    assert_int_equal(ring_after(&ring, 1000), ring.count);
    ring_done(&ring);
}

static void a_full_ring_drops_the_oldest_and_says_how_far(void **unused)
{
    (void)unused;
    struct ring ring = {.tail = 0};
    fill(&ring, 1, RING_EVENTS + 5);
    assert_int_equal(ring.count, RING_EVENTS);
    assert_int_equal(ring.tail, 5);
    assert_int_equal(ring_at(&ring, 0)->seq, 6);
    assert_int_equal(ring_at(&ring, ring_after(&ring, 100))->seq, 101);
    assert_int_equal(ring_at(&ring, RING_EVENTS - 1)->seq, RING_EVENTS + 5);
    ring_done(&ring);
}

static void a_ring_holds_no_more_bytes_than_it_may(void **unused)
{
    (void)unused;
    struct ring ring = {.tail = 0};
    for (uint64_t seq = 1; seq <= RING_EVENTS; seq++) {
        struct feed_event event = event_of(seq);
        /* Each control character is six bytes in JSON. */
        memset(event.event.detail, 1, sizeof(event.event.detail) - 1);
        assert_true(ring_add(&ring, &event));
        assert_true(ring.bytes <= RING_BYTES);
    }
    assert_true(ring.count < RING_EVENTS);
    assert_int_equal(ring.tail, ring_at(&ring, 0)->seq - 1);
    ring_done(&ring);
}

static void a_ring_that_was_cleared_begins_anew(void **unused)
{
    (void)unused;
    struct ring ring = {.tail = 0};
    fill(&ring, 1, 3);
    ring_clear(&ring, 7);
    assert_int_equal(ring.count, 0);
    assert_int_equal(ring.bytes, 0);
    assert_int_equal(ring.tail, 7);
    fill(&ring, 8, 8);
    assert_int_equal(ring_at(&ring, ring_after(&ring, 7))->seq, 8);
    ring_done(&ring);
}

/* ---- filters --------------------------------------------------------------------------------- */

static bool matches(const struct listen_filter *filter)
{
    struct feed_event event = event_of(1);
    struct ring_event seen;
    ring_event_of(&event, &seen);
    return listen_matches(filter, &seen);
}

static void a_listener_hears_what_he_asked_for(void **unused)
{
    (void)unused;
    assert_true(matches(&(struct listen_filter){.tenant = "acme"}));
    assert_true(matches(&(struct listen_filter){.tenant = "acme", .queue = "large"}));
    assert_false(matches(&(struct listen_filter){.tenant = "acme", .queue = "small"}));
    assert_false(
        matches(&(struct listen_filter){.tenant = "acme", .has_job = true, .job = {.bytes = {1}}}));
    assert_true(matches(&(struct listen_filter){.tenant = "acme", .states = 1u << JOB_RUNNING}));
    assert_false(matches(&(struct listen_filter){.tenant = "acme", .states = 1u << JOB_FAILED}));
    assert_true(matches(&(struct listen_filter){
        .tenant = "acme", .states = 1u << JOB_FAILED, .kinds = {"claimed"}, .kind_count = 1}));
}

static void nobody_hears_of_another_tenant(void **unused)
{
    (void)unused;
    assert_false(matches(&(struct listen_filter){.tenant = "other"}));
    assert_false(matches(&(struct listen_filter){.tenant = "other", .queue = "large"}));
    assert_false(matches(&(struct listen_filter){.tenant = "acm"}));
}

static void an_event_is_one_frame(void **unused)
{
    (void)unused;
    BUF_AUTO struct buf frame = BUF_INIT((size_t)65536);
    struct feed_event event = event_of(42);
    (void)snprintf(event.event.detail, sizeof(event.event.detail), "two\nlines\n\nand a gap");
    assert_true(listen_frame(&event, &frame));
    assert_int_equal(strncmp(buf_text(&frame), "id: 42\nevent: job\ndata: {", 25), 0);
    assert_ptr_equal(strstr(buf_text(&frame), "\n\n"), frame.ptr + frame.len - 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_gives_the_events_behind_a_number),
        cmocka_unit_test(a_full_ring_drops_the_oldest_and_says_how_far),
        cmocka_unit_test(a_ring_holds_no_more_bytes_than_it_may),
        cmocka_unit_test(a_ring_that_was_cleared_begins_anew),
        cmocka_unit_test(a_listener_hears_what_he_asked_for),
        cmocka_unit_test(nobody_hears_of_another_tenant),
        cmocka_unit_test(an_event_is_one_frame),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
