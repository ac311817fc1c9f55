/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"

#include "common/base/fs.h"
#include "common/base/wake.h"
#include "worker/runner/journal.h"
#include "worker/runner/journal_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#define WAIT_MS 30000

struct fixture {
    char path[64];
    int dir;
    int wake;
    struct journal *journal;
};

static void reopen(struct fixture *fixture)
{
    struct err err = {0};
    assert_ok(journal_open(fixture->dir, fixture->wake, &fixture->journal, &err));
}

static int set_up(void **state)
{
    static struct fixture fixture;
    struct err err = {0};
    (void)snprintf(fixture.path, sizeof(fixture.path), "/tmp/test_runner_journal.XXXXXX");
    if (!mkdtemp(fixture.path) || fs_open_dir(fixture.path, false, &fixture.dir, &err) != ERR_OK)
        return 1;
    fixture.wake = wake_open();
    *state = &fixture;
    return journal_open(fixture.dir, fixture.wake, &fixture.journal, &err) != ERR_OK;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    struct err err = {0};
    journal_close(fixture->journal);
    fd_close(&fixture->dir);
    fd_close(&fixture->wake);
    FD_AUTO int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fs_remove_tree(tmp, fixture->path + sizeof("/tmp"), &err) != ERR_OK;
}

static struct runner_job make_job(bool exited)
{
    struct runner_job job = {.job = uuid_v7(), .fence = 1, .run = 1, .exited = exited};
    job.record = (struct runner_record){.job = job.job, .fence = 1, .run = 1, .exit_code = 7};
    if (!exited)
        job.record = (struct runner_record){0};
    return job;
}

static void wait_wake(struct fixture *fixture)
{
    struct pollfd wake = {.fd = fixture->wake, .events = POLLIN};
    assert_int_equal(poll(&wake, 1, WAIT_MS), 1);
    wake_drain(fixture->wake);
}

static void wait_kept(struct fixture *fixture, const void *owner)
{
    void *kept = NULL;
    while (!kept) {
        wait_wake(fixture);
        kept = journal_kept(fixture->journal);
    }
    assert_ptr_equal(kept, owner);
}

static struct journal_entry *ask(struct fixture *fixture, struct runner_job *job)
{
    struct err err = {0};
    struct journal_entry *entry = journal_add(fixture->journal, &job->job, job->run, job);
    assert_non_null(entry);
    assert_ok(journal_keep(fixture->journal, entry, job, &err));
    return entry;
}

static struct journal_entry *keep(struct fixture *fixture, struct runner_job *job)
{
    struct journal_entry *entry = ask(fixture, job);
    wait_kept(fixture, job);
    return entry;
}

struct seen {
    struct runner_job jobs[16];
    size_t count;
};

static bool collect(void *arg, const struct runner_job *job)
{
    struct seen *seen = arg;
    assert_true(seen->count < ARRAY_LEN(seen->jobs));
    seen->jobs[seen->count++] = *job;
    return true;
}

static struct seen look(struct fixture *fixture)
{
    struct seen seen = {.count = 0};
    struct err err = {0};
    assert_ok(journal_read(fixture->dir, collect, &seen, &err));
    return seen;
}

static void what_was_kept_is_read_again(void **state)
{
    struct fixture *fixture = *state;
    struct runner_job job = make_job(true);
    assert_int_equal(look(fixture).count, 0);
    (void)keep(fixture, &job);
    struct seen seen = look(fixture);
    assert_int_equal(seen.count, 1);
    assert_memory_equal(&seen.jobs[0].record, &job.record, sizeof(job.record));
}

static void the_latest_word_on_a_run_counts(void **state)
{
    struct fixture *fixture = *state;
    struct err err = {0};
    struct runner_job job = make_job(false);
    struct journal_entry *entry = journal_add(fixture->journal, &job.job, 1, &job);
    assert_ok(journal_note(fixture->journal, entry, &job, &err));
    assert_false(look(fixture).jobs[0].exited);
    job.fence = 4;
    assert_ok(journal_keep(fixture->journal, entry, &job, &err));
    wait_kept(fixture, &job);
    struct seen seen = look(fixture);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.jobs[0].fence, 4);
}

static void a_forgotten_run_is_not_read_again(void **state)
{
    struct fixture *fixture = *state;
    struct runner_job first = make_job(true);
    struct runner_job second = make_job(true);
    journal_forget(fixture->journal, keep(fixture, &first));
    (void)keep(fixture, &second);
    struct seen seen = look(fixture);
    assert_int_equal(seen.count, 1);
    assert_true(uuid_eq(&seen.jobs[0].job, &second.job));
}

static void a_run_may_be_forgotten_while_it_is_written(void **state)
{
    struct fixture *fixture = *state;
    struct runner_job first = make_job(true);
    struct runner_job second = make_job(true);
    for (int i = 0; i < 200; i++)
        journal_forget(fixture->journal, ask(fixture, &first));
    (void)keep(fixture, &second);
    journal_close(fixture->journal);
    fixture->journal = NULL;
    struct seen seen = look(fixture);
    for (size_t i = 0; i < seen.count; i++)
        assert_true(uuid_eq(&seen.jobs[i].job, &second.job) ||
                    uuid_eq(&seen.jobs[i].job, &first.job));
}

static void flip(struct fixture *fixture, const char *name, size_t at)
{
    char byte = 0;
    struct err err = {0};
    FD_AUTO int fd = -1;
    assert_ok(fs_open_beneath(fixture->dir, name, O_RDWR, 0, &fd, &err));
    assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
    byte = (char)~byte;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
}

static size_t end_of(struct fixture *fixture)
{
    BUF_AUTO struct buf bytes = BUF_INIT(JOURNAL_MAX);
    struct err err = {0};
    uint64_t generation = 0;
    size_t file = 0;
    assert_ok(journal_files_read(fixture->dir, &bytes, &generation, &file, &err));
    assert_int_equal(file, 0);
    return bytes.len;
}

static void a_torn_tail_loses_only_itself(void **state)
{
    struct fixture *fixture = *state;
    struct runner_job first = make_job(true);
    struct runner_job second = make_job(true);
    (void)keep(fixture, &first);
    size_t before = end_of(fixture);
    (void)keep(fixture, &second);
    size_t after = end_of(fixture);
    for (size_t at = before; at < after; at += 7) {
        flip(fixture, journal_names[0], at);
        struct seen seen = look(fixture);
        assert_int_equal(seen.count, 1);
        assert_true(uuid_eq(&seen.jobs[0].job, &first.job));
        flip(fixture, journal_names[0], at);
    }
    assert_int_equal(look(fixture).count, 2);
}

static const char *current_name(struct fixture *fixture)
{
    struct err err = {0};
    BUF_AUTO struct buf bytes = BUF_INIT(JOURNAL_MAX);
    uint64_t generation = 0;
    size_t file = 0;
    assert_ok(journal_files_read(fixture->dir, &bytes, &generation, &file, &err));
    return journal_names[file];
}

static void note(struct fixture *fixture, struct journal_entry *entry, const struct runner_job *job)
{
    struct err err = {0};
    assert_ok(journal_note(fixture->journal, entry, job, &err));
}

/* Writes until this file has taken over. */
static void fill_file(struct fixture *fixture, const char *name)
{
    struct runner_job job = make_job(true);
    struct journal_entry *entry = journal_add(fixture->journal, &job.job, 1, &job);
    do {
        for (int i = 0; i < 100; i++)
            note(fixture, entry, &job);
    } while (strcmp(current_name(fixture), name) != 0);
    journal_forget(fixture->journal, entry);
}

static void a_full_file_is_turned_over_with_what_is_held(void **state)
{
    struct fixture *fixture = *state;
    struct stat status;
    struct runner_job held = make_job(true);
    struct runner_job gone = make_job(true);
    (void)keep(fixture, &held);
    journal_forget(fixture->journal, keep(fixture, &gone));
    for (int i = 0; i < 6; i++)
        fill_file(fixture, journal_names[(i + 1) % 2]);
    journal_close(fixture->journal);
    fixture->journal = NULL;
    struct seen seen = look(fixture);
    assert_int_equal(seen.count, 1);
    assert_true(uuid_eq(&seen.jobs[0].job, &held.job));
    for (size_t i = 0; i < JOURNAL_FILES; i++) {
        assert_int_equal(fstatat(fixture->dir, journal_names[i], &status, 0), 0);
        assert_in_range(status.st_size, 1, JOURNAL_SIZE);
    }
}

static void a_turn_over_that_was_cut_short_leaves_the_former_file(void **state)
{
    struct fixture *fixture = *state;
    struct runner_job held = make_job(true);
    (void)keep(fixture, &held);
    fill_file(fixture, journal_names[1]);
    journal_close(fixture->journal);
    fixture->journal = NULL;
    flip(fixture, journal_names[1], 40); /* in the first record, before the seal */
    struct seen seen = look(fixture);
    assert_true(seen.count >= 1);
    bool found = false;
    for (size_t i = 0; i < seen.count; i++)
        found = found || uuid_eq(&seen.jobs[i].job, &held.job);
    assert_true(found);
}

static void what_a_former_runner_left_stays_until_it_is_held(void **state)
{
    struct fixture *fixture = *state;
    struct err err = {0};
    struct runner_job old = make_job(true);
    struct runner_job newer = make_job(true);
    (void)keep(fixture, &old);
    journal_close(fixture->journal);
    reopen(fixture);
    assert_int_equal(look(fixture).count, 1);
    struct journal_entry *entry = journal_add(fixture->journal, &old.job, 1, &old);
    assert_ok(journal_hold(fixture->journal, entry, &old, &err));
    (void)keep(fixture, &newer);
    assert_int_equal(look(fixture).count, 2);
}

static void many_ends_are_kept_together(void **state)
{
    struct fixture *fixture = *state;
    static struct runner_job jobs[16];
    size_t kept = 0;
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
        jobs[i] = make_job(true);
        (void)ask(fixture, &jobs[i]);
    }
    while (kept < ARRAY_LEN(jobs)) {
        wait_wake(fixture);
        while (journal_kept(fixture->journal))
            kept++;
    }
    assert_int_equal(look(fixture).count, ARRAY_LEN(jobs));
}

int main(void)
{
#define JOURNAL_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        JOURNAL_TEST(what_was_kept_is_read_again),
        JOURNAL_TEST(the_latest_word_on_a_run_counts),
        JOURNAL_TEST(a_forgotten_run_is_not_read_again),
        JOURNAL_TEST(a_run_may_be_forgotten_while_it_is_written),
        JOURNAL_TEST(a_torn_tail_loses_only_itself),
        JOURNAL_TEST(a_full_file_is_turned_over_with_what_is_held),
        JOURNAL_TEST(a_turn_over_that_was_cut_short_leaves_the_former_file),
        JOURNAL_TEST(what_a_former_runner_left_stays_until_it_is_held),
        JOURNAL_TEST(many_ends_are_kept_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
