/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"

#include "common/base/spare.h"

static bool none_left;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_realloc(void *block, size_t size);
void *__wrap_realloc(void *block, size_t size);

void *__wrap_malloc(size_t size)
{
    return none_left ? NULL : __real_malloc(size);
}

void *__wrap_realloc(void *block, size_t size)
{
    return none_left ? NULL : __real_realloc(block, size);
}

static void memory_comes_from_the_room_when_there_is_no_other(void **unused)
{
    (void)unused;
    char *usual = spare_malloc(10);
    none_left = true;
    char *spare = spare_malloc(10);
    char *more = spare_malloc(100000);
    none_left = false;
    assert_non_null(usual);
    assert_true(spare_used() >= 100010);
    memset(spare, 'a', 10);
    memset(more, 'b', 100000);
    assert_int_equal(spare[9], 'a');
    spare_free(usual);
    spare_free(spare);
    spare_free(more);
    spare_free(NULL);
    assert_int_equal(spare_used(), 0);
}

static void what_was_given_back_is_given_again(void **unused)
{
    (void)unused;
    void *blocks[64];
    none_left = true;
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < ARRAY_LEN(blocks); i++)
            blocks[i] = spare_malloc(12000 + i * 16);
        for (size_t i = 0; i < ARRAY_LEN(blocks); i += 2)
            spare_free(blocks[i]);
        for (size_t i = 1; i < ARRAY_LEN(blocks); i += 2)
            spare_free(blocks[i]);
    }
    void *all = spare_try(SPARE_BYTES - 64);
    assert_non_null(all);
    assert_null(spare_try(64));
    assert_null(spare_try(SIZE_MAX));
    spare_free(all);
    none_left = false;
}

static void a_block_grows_within_the_room_and_into_it(void **unused)
{
    (void)unused;
    char *block = spare_try(8);
    memcpy(block, "1234567", 8);
    none_left = true;
    block = spare_grow(block, 1000);
    assert_string_equal(block, "1234567");
    assert_true(spare_used() > 0);
    block = spare_grow(block, 5000);
    none_left = false;
    block = spare_grow(block, 6000);
    assert_string_equal(block, "1234567");
    assert_int_equal(spare_used(), 0);
    spare_free(block);
}

static void a_text_leaves_the_room_if_there_is_memory(void **unused)
{
    (void)unused;
    none_left = true;
    char *text = spare_malloc(8);
    (void)snprintf(text, 8, "text");
    none_left = false;
    text = spare_text(text);
    assert_string_equal(text, "text");
    assert_int_equal(spare_used(), 0);
    free(text);
    assert_null(spare_text(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_comes_from_the_room_when_there_is_no_other),
        cmocka_unit_test(what_was_given_back_is_given_again),
        cmocka_unit_test(a_block_grows_within_the_room_and_into_it),
        cmocka_unit_test(a_text_leaves_the_room_if_there_is_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
