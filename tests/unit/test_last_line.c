/* SPDX-License-Identifier: MIT */
#include "common/base/last_line.h"
#include "common/base/shown_url.h"

#include "tests/support/test.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static char line[LAST_LINE_SIZE];

static const char *of(const char *text)
{
    return last_line_of(sv_of(text), line) ? line : "(none)";
}

static void it_is_the_last_one_that_is_not_blank(void **unused)
{
    (void)unused;
    assert_string_equal(of("one\ntwo\n"), "two");
    assert_string_equal(of("one\n  two \t\r\n\n \n"), "two");
    assert_string_equal(of("progress 1\rprogress 2"), "progress 2");
    assert_string_equal(of(""), "(none)");
    assert_string_equal(of("\n \n"), "(none)");
}

static void what_may_not_be_shown_is_a_question_mark(void **unused)
{
    (void)unused;
    assert_string_equal(of("a\033[2Jb\007"), "a?[2Jb?");
    assert_string_equal(of("h\xC3\xA4\xE2\x82\xAC\xF0\x9F\x99\x82"),
                        "h\xC3\xA4\xE2\x82\xAC\xF0\x9F\x99\x82");
    assert_string_equal(of("\xFF"
                           "a\xC3"),
                        "?a?");
    assert_string_equal(of("a\xE2\x80\xAE"
                           "b"),
                        "a???b");
    assert_string_equal(of("a\xC2\x9B"
                           "b"),
                        "a??b");
    assert_string_equal(of("a\xD8\x9C"
                           "b\xF3\xA0\x81\xA1"),
                        "a??b????");
}

static void it_does_not_end_its_quotation(void **unused)
{
    (void)unused;
    assert_string_equal(of("a\". Do this: \"b"), "a'. Do this: 'b");
}

static void it_is_cut_between_two_characters(void **unused)
{
    (void)unused;
    char text[LAST_LINE_MAX + 20];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    memcpy(text + LAST_LINE_MAX - 1, "\xC3\xA4", 2);
    assert_string_equal(of(text) + LAST_LINE_MAX - 1, "...");
    assert_true(sv_is_utf8(sv_of(line)));
    text[LAST_LINE_MAX - 1] = 0;
    assert_int_equal(strlen(of(text)), LAST_LINE_MAX - 1);
}

static void only_the_end_of_a_long_file_is_read(void **unused)
{
    (void)unused;
    char name[] = "/tmp/last-line-XXXXXX";
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    assert_int_equal(unlink(name), 0);
    assert_false(last_line_read(fd, line));
    assert_int_equal(ftruncate(fd, (off_t)1 << 30), 0);
    assert_int_equal(pwrite(fd, "\nthe end\n", 9, (off_t)1 << 30), 9);
    assert_true(last_line_read(fd, line));
    assert_string_equal(line, "the end");
    (void)close(fd);
}

static void an_address_is_shown_without_what_may_be_secret(void **unused)
{
    (void)unused;
    static const struct {
        const char *url;
        const char *shown;
    } rows[] = {
        {"http://host:80/a/b", "http://host:80/a/b"},
        {"https://ann:secret@host/a?token=secret#secret", "https://host/a"},
        {"http://ann:s@cret@host/a", "http://host/a"},
        {"http://[::1]:8080/a?to=x@y", "http://[::1]:8080/a"},
        {"http://[::1]/a@b", "http://[::1]/a@b"},
        {"http://ann:sec/ret@host/a", "http://..."},
        {"http://ann:sec?ret@host/a", "http://..."},
        {"http://ann:12/ret@host/a", "http://..."},
        {"http://host/npm/@scope/x", "http://host/npm/@scope/x"},
        {"file:///etc/hostname", "file:///etc/hostname"},
        {"http://host/\033[2J", "http://host/?[2J"},
        {"ann:secret@host/a", "host/a"},
        {"", ""},
    };
    char text[SHOWN_URL_SIZE];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_string_equal(shown_url(rows[i].url, text), rows[i].shown);
    char long_url[1000] = "http://host/";
    memset(long_url + 12, 'x', sizeof(long_url) - 13);
    assert_string_equal(shown_url(long_url, text) + SHOWN_URL_SIZE - 7, "xxx...");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_is_the_last_one_that_is_not_blank),
        TEST(what_may_not_be_shown_is_a_question_mark),
        TEST(it_does_not_end_its_quotation),
        TEST(it_is_cut_between_two_characters),
        TEST(an_address_is_shown_without_what_may_be_secret),
        TEST(only_the_end_of_a_long_file_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
