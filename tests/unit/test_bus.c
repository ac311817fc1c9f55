/* SPDX-License-Identifier: MIT */
#include "common/bus/consumer_impl.h"
#include "common/bus/topology.h"

#include "tests/support/test.h"

#include <amqp_framing.h>

static const amqp_field_value_t *find(const struct topology_args *args, const char *key)
{
    for (int i = 0; i < args->table.num_entries; i++) {
        const amqp_bytes_t name = args->table.entries[i].key;
        if (sv_is((struct sv){name.bytes, name.len}, key))
            return &args->table.entries[i].value;
    }
    return NULL;
}

static bool has_text(const struct topology_args *args, const char *key, const char *text)
{
    const amqp_field_value_t *value = find(args, key);
    return value && value->kind == AMQP_FIELD_KIND_UTF8 &&
           sv_is((struct sv){value->value.bytes.bytes, value->value.bytes.len}, text);
}

static void a_quorum_submission_queue_limits_deliveries_and_never_loses_a_dead_letter(void **unused)
{
    (void)unused;
    struct topology_args args;
    const struct topology_choice choice = {.type = BUS_QUORUM, .delivery_limit = 20};
    topology_queue_args(BUS_QUEUE_SUBMIT, &choice, &args);
    assert_true(has_text(&args, "x-queue-type", "quorum"));
    assert_true(has_text(&args, "x-dead-letter-exchange", "sluice.dead"));
    assert_true(has_text(&args, "x-dead-letter-strategy", "at-least-once"));
    assert_true(has_text(&args, "x-overflow", "reject-publish"));
    assert_int_equal(find(&args, "x-delivery-limit")->value.i64, 20);
}

static void a_classic_submission_queue_has_no_argument_of_quorum_queues(void **unused)
{
    (void)unused;
    struct topology_args args;
    const struct topology_choice choice = {.type = BUS_CLASSIC, .delivery_limit = 20};
    topology_queue_args(BUS_QUEUE_SUBMIT, &choice, &args);
    assert_true(has_text(&args, "x-queue-type", "classic"));
    assert_true(has_text(&args, "x-dead-letter-exchange", "sluice.dead"));
    assert_int_equal(args.table.num_entries, 2);
}

static void a_defer_queue_gives_its_messages_back_after_its_time(void **unused)
{
    (void)unused;
    struct topology_args args;
    const struct topology_choice choice = {.ttl_s = 5};
    topology_queue_args(BUS_QUEUE_DEFER, &choice, &args);
    assert_int_equal(find(&args, "x-message-ttl")->value.i64, 5000);
    assert_true(has_text(&args, "x-dead-letter-exchange", "sluice.submit"));
}

static void only_what_cannot_be_routed_at_submission_has_an_alternate(void **unused)
{
    (void)unused;
    struct topology_args args;
    for (int i = 0; i < BUS_EXCHANGE_COUNT; i++) {
        topology_exchange_args((enum bus_exchange)i, &args);
        assert_int_equal(has_text(&args, "alternate-exchange", "sluice.alternate"),
                         i == BUS_SUBMIT);
    }
}

static void names_are_built_from_tenant_and_queue(void **unused)
{
    (void)unused;
    char name[BUS_NAME_SIZE];
    enum bus_queue_type type = BUS_QUORUM;
    assert_string_equal(bus_submit_queue("acme", "quick", name), "sluice.acme.submit.quick");
    assert_string_equal(bus_recovery_queue("acme", name), "sluice.acme.recovery");
    assert_string_equal(bus_worker_queue("1", name), "sluice.worker.1");
    assert_true(bus_queue_type_parse(SV("classic"), &type));
    assert_string_equal(bus_queue_type_text(type), "classic");
    assert_false(bus_queue_type_parse(SV("Classic"), &type));
}

static amqp_bytes_t bytes_of(char *text)
{
    return (amqp_bytes_t){strlen(text), text};
}

static struct delivery *deliver(struct mailbox *mailbox, uint64_t body_bytes,
                                amqp_basic_properties_t *properties)
{
    char key[] = "sluice.t.submit.q";
    const amqp_basic_deliver_t method = {.delivery_tag = 7, .routing_key = bytes_of(key)};
    amqp_frame_t header = {.frame_type = AMQP_FRAME_HEADER};
    struct delivery *delivery = delivery_new(mailbox);
    header.payload.properties.body_size = body_bytes;
    header.payload.properties.decoded = properties;
    delivery_set_method(delivery, &method);
    assert_false(delivery_is_whole(delivery));
    assert_true(delivery_set_header(delivery, &header));
    return delivery;
}

static void a_delivery_is_put_together_from_its_frames(void **unused)
{
    (void)unused;
    char id[] = "the id", name[] = "x-delivery-count", first[] = "{\"a\"", second[] = ":1}";
    struct mailbox *mailbox = mailbox_new(-1);
    amqp_table_entry_t entry = {.key = bytes_of(name)};
    entry.value.kind = AMQP_FIELD_KIND_I64;
    entry.value.value.i64 = 3;
    amqp_basic_properties_t properties = {._flags =
                                              AMQP_BASIC_MESSAGE_ID_FLAG | AMQP_BASIC_HEADERS_FLAG,
                                          .message_id = bytes_of(id),
                                          .headers = {1, &entry}};
    struct delivery *delivery = deliver(mailbox, 7, &properties);
    assert_false(delivery_is_whole(delivery));
    delivery_add_body(delivery, bytes_of(first));
    assert_false(delivery_is_whole(delivery));
    delivery_add_body(delivery, bytes_of(second));
    assert_true(delivery_is_whole(delivery));
    assert_true(sv_is(delivery->pub.body, "{\"a\":1}"));
    assert_string_equal(delivery->pub.message_id, "the id");
    assert_string_equal(delivery->pub.routing_key, "sluice.t.submit.q");
    assert_int_equal(delivery->pub.delivery_count, 3);
    assert_false(delivery->pub.truncated);
    delivery_free(delivery);
    mailbox_close(mailbox);
}

static void a_delivery_without_a_body_is_whole_with_its_header(void **unused)
{
    (void)unused;
    struct mailbox *mailbox = mailbox_new(-1);
    amqp_basic_properties_t properties = {0};
    struct delivery *delivery = deliver(mailbox, 0, &properties);
    assert_true(delivery_is_whole(delivery));
    assert_int_equal(delivery->pub.body.len, 0);
    delivery_free(delivery);
    mailbox_close(mailbox);
}

static void of_a_huge_message_only_the_beginning_is_kept(void **unused)
{
    (void)unused;
    enum { CHUNK = 16 * 1024 };
    static char chunk[CHUNK];
    const uint64_t size = (uint64_t)CHUNK * 1000;
    struct mailbox *mailbox = mailbox_new(-1);
    amqp_basic_properties_t properties = {0};
    struct delivery *delivery = deliver(mailbox, size, &properties);
    for (int i = 0; i < 1000; i++) {
        assert_false(delivery_is_whole(delivery));
        delivery_add_body(delivery, (amqp_bytes_t){CHUNK, chunk});
    }
    assert_true(delivery_is_whole(delivery));
    assert_true(delivery->pub.truncated);
    assert_int_equal(delivery->pub.body.len, BUS_BODY_MAX);
    delivery_free(delivery);
    mailbox_close(mailbox);
}

static void properties_that_are_too_long_are_left_out(void **unused)
{
    (void)unused;
    char id[100];
    memset(id, 'x', sizeof(id));
    struct mailbox *mailbox = mailbox_new(-1);
    amqp_basic_properties_t properties = {._flags = AMQP_BASIC_MESSAGE_ID_FLAG,
                                          .message_id = {sizeof(id), id}};
    struct delivery *delivery = deliver(mailbox, 0, &properties);
    assert_string_equal(delivery->pub.message_id, "");
    delivery_free(delivery);
    mailbox_close(mailbox);
}

static amqp_table_entry_t text_entry(const char *key, const char *text)
{
    return (amqp_table_entry_t){
        .key = amqp_cstring_bytes(key),
        .value = {.kind = AMQP_FIELD_KIND_UTF8, .value.bytes = amqp_cstring_bytes(text)}};
}

static void a_dead_letter_tells_where_it_died_last(void **unused)
{
    (void)unused;
    amqp_field_value_t key = {.kind = AMQP_FIELD_KIND_UTF8,
                              .value.bytes = amqp_cstring_bytes("sluice.acme.submit.q")};
    amqp_table_entry_t last[] = {
        text_entry("reason", "rejected"),
        text_entry("queue", "sluice.acme.submit.q"),
        text_entry("exchange", "sluice.submit"),
        {.key = amqp_cstring_bytes("count"),
         .value = {.kind = AMQP_FIELD_KIND_I64, .value.i64 = 3}},
        {.key = amqp_cstring_bytes("time"),
         .value = {.kind = AMQP_FIELD_KIND_TIMESTAMP, .value.u64 = 1700000000}},
        {.key = amqp_cstring_bytes("routing-keys"),
         .value = {.kind = AMQP_FIELD_KIND_ARRAY,
                   .value.array = {.num_entries = 1, .entries = &key}}},
    };
    amqp_table_entry_t first[] = {text_entry("reason", "expired")};
    amqp_field_value_t deaths[] = {
        {.kind = AMQP_FIELD_KIND_TABLE,
         .value.table = {.num_entries = (int)ARRAY_LEN(last), .entries = last}},
        {.kind = AMQP_FIELD_KIND_TABLE, .value.table = {.num_entries = 1, .entries = first}},
    };
    amqp_table_entry_t header = {
        .key = amqp_cstring_bytes("x-death"),
        .value = {.kind = AMQP_FIELD_KIND_ARRAY,
                  .value.array = {.num_entries = 2, .entries = deaths}},
    };
    amqp_basic_properties_t properties = {._flags = AMQP_BASIC_HEADERS_FLAG,
                                          .headers = {.num_entries = 1, .entries = &header}};
    struct mailbox *mailbox = mailbox_new(-1);
    struct delivery *delivery = deliver(mailbox, 0, &properties);
    const struct bus_death *death = &delivery->pub.death;
    assert_string_equal(death->reason, "rejected");
    assert_string_equal(death->queue, "sluice.acme.submit.q");
    assert_string_equal(death->exchange, "sluice.submit");
    assert_string_equal(death->routing_key, "sluice.acme.submit.q");
    assert_int_equal(death->count, 3);
    assert_int_equal(death->at_s, 1700000000);
    delivery_free(delivery);
    mailbox_close(mailbox);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_quorum_submission_queue_limits_deliveries_and_never_loses_a_dead_letter),
        TEST(a_classic_submission_queue_has_no_argument_of_quorum_queues),
        TEST(a_defer_queue_gives_its_messages_back_after_its_time),
        TEST(only_what_cannot_be_routed_at_submission_has_an_alternate),
        TEST(names_are_built_from_tenant_and_queue),
        TEST(a_delivery_is_put_together_from_its_frames),
        TEST(a_delivery_without_a_body_is_whole_with_its_header),
        TEST(of_a_huge_message_only_the_beginning_is_kept),
        TEST(properties_that_are_too_long_are_left_out),
        TEST(a_dead_letter_tells_where_it_died_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
