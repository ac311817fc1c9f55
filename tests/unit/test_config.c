/* SPDX-License-Identifier: MIT */
#include "tests/support/test.h"

#include "common/config/config.h"

#include <unistd.h>

static char path[64];

static void set_variable(const char *name, const char *value)
{
    assert_int_equal(setenv(name, value, 1), 0); /* NOLINT(concurrency-mt-unsafe) */
}

/* Loads with the words as command line; the file is the one that write_file wrote, or none. */
static enum err_code load(char **words, struct config_flag *flags, struct config **ret_cfg,
                          int *ret_rest, struct err *err)
{
    struct config_args args = {.argv = words, .flags = flags};
    while (words && words[args.argc])
        args.argc++;
    enum err_code rc = config_load(&args, ret_cfg, err);
    if (ret_rest)
        *ret_rest = args.rest;
    return rc;
}

static void write_file(const char *text)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    set_variable("SLUICE_CONFIG", path);
}

static void assert_file_refused(const char *text, const char *part)
{
    struct config *cfg = NULL;
    struct err err = {0};
    write_file(text);
    assert_code(config_load(NULL, &cfg, &err), ERR_CONFIG);
    assert_null(cfg);
    if (!strstr(err.text, part))
        fail_msg("\"%s\" is not in \"%s\"", part, err.text);
}

static void assert_flag_refused(const char *word, const char *part)
{
    struct config *cfg = NULL;
    struct err err = {0};
    char copy[100];
    snprintf(copy, sizeof(copy), "%s", word);
    char *words[] = {(char[]){"test"}, copy, NULL};
    assert_code(load(words, NULL, &cfg, NULL, &err), ERR_INVALID);
    if (!strstr(err.text, part))
        fail_msg("\"%s\" is not in \"%s\"", part, err.text);
}

static void defaults_stand_when_nothing_is_said(void **unused)
{
    (void)unused;
    AUTO(config_free) struct config *cfg = NULL;
    struct err err = {0};
    assert_ok(config_load(NULL, &cfg, &err));
    assert_string_equal(cfg->db_host, "127.0.0.1");
    assert_int_equal(cfg->db_port, 3306);
    assert_string_equal(cfg->amqp_queue_type, "quorum");
    assert_int_equal(cfg->web_body_max_bytes, 4 * 1024 * 1024);
    assert_false(cfg->auth_allow_hs256);
    assert_int_equal(cfg->worker_file_roots.count, 0);
    assert_null(cfg->origin[CONFIG_ID_db_host]);
}

static void flags_win_over_environment_over_file(void **unused)
{
    (void)unused;
    AUTO(config_free) struct config *cfg = NULL;
    struct err err = {0};
    char *words[] = {(char[]){"test"}, (char[]){"--db-user"}, (char[]){"of-flag"},
                     (char[]){"--auth-allow-hs256"}, NULL};
    write_file("[db]\nhost = of-file\nname = of-file\nuser = of-file\n"
               "[worker]\nfile_roots = /a , /b/c\ninput_max_bytes = 64KiB\n");
    set_variable("SLUICE_DB_NAME", "of-environment");
    set_variable("SLUICE_DB_USER", "of-environment");
    assert_ok(load(words, NULL, &cfg, NULL, &err));
    assert_string_equal(cfg->db_host, "of-file");
    assert_string_equal(cfg->db_name, "of-environment");
    assert_string_equal(cfg->db_user, "of-flag");
    assert_true(cfg->auth_allow_hs256);
    assert_int_equal(cfg->worker_file_roots.count, 2);
    assert_string_equal(cfg->worker_file_roots.items[0], "/a");
    assert_string_equal(cfg->worker_file_roots.items[1], "/b/c");
    assert_int_equal(cfg->worker_input_max_bytes, 65536);
    assert_string_equal(cfg->origin[CONFIG_ID_db_name], "SLUICE_DB_NAME");
    assert_string_equal(cfg->origin[CONFIG_ID_db_user], "--db-user");
    assert_non_null(strstr(cfg->origin[CONFIG_ID_db_host], ":2"));
}

static void faults_in_the_file_name_line_key_value_and_limit(void **unused)
{
    (void)unused;
    assert_file_refused("[db]\n\nhots = x\n",
                        ":3: unknown setting \"db.hots\"; did you mean db.host?");
    assert_file_refused("[db]\nport = 0\n", ":2: db.port: \"0\" is not allowed");
    assert_file_refused("[db]\nport = 0\n", "from 1 to 65535");
    assert_file_refused("[amqp]\nhost = a,,b\n", ":2: amqp.host: \"a,,b\" is not allowed");
    assert_file_refused("[amqp]\nhost = a:0\n", "HOST or HOST:PORT, up to 16 of them");
    assert_file_refused("[db]\nport = 12x\n", "\"12x\"");
    assert_file_refused("[db]\nport = -1\n", "\"-1\"");
    assert_file_refused("[db]\nport = 99999999999999999999\n", "from 1 to 65535");
    assert_file_refused("[db]\nport = 1\nport = 2\n", ":3: db.port was set in line 2 already");
    assert_file_refused("[amqp]\nqueue_type = stream\n", "one of quorum|classic");
    assert_file_refused("[auth]\nallow_hs256 = maybe\n", "true or false");
    assert_file_refused("[archive]\nroot = here\n", "begins with /");
    assert_file_refused("[worker]\nfile_roots = /a,b\n", "begin with /");
    assert_file_refused("[web]\nbody_max_bytes = 99GiB\n", "1073741824 bytes");
    assert_file_refused("[db]\nnonsense\n", ":2: the line is neither");
    assert_file_refused("[db]\nhost = a\x01"
                        "b\n",
                        "UTF-8 on one line");
    assert_file_refused("[fleet]\nlease_ms = 5000\n", "three times fleet.beat_ms 5000");
}

static void a_missing_file_is_a_fault_when_it_was_named(void **unused)
{
    (void)unused;
    assert_flag_refused("--config", "needs an argument");
    struct config *cfg = NULL;
    struct err err = {0};
    char *words[] = {(char[]){"test"}, (char[]){"--config=/nowhere/x.conf"}, NULL};
    assert_code(load(words, NULL, &cfg, NULL, &err), ERR_CONFIG);
    assert_non_null(strstr(err.text, "/nowhere/x.conf"));
}

static void a_line_longer_than_the_limit_is_refused(void **unused)
{
    (void)unused;
    char *text = calloc(1, 40000);
    assert_non_null(text);
    int head = snprintf(text, 40000, "[db]\nhost=");
    memset(text + head, 'x', 39000);
    assert_file_refused(text, ":2: the line is longer than");
    free(text);
}

static void secrets_are_not_printed_and_not_taken_from_flags(void **unused)
{
    (void)unused;
    AUTO(config_free) struct config *cfg = NULL;
    struct err err = {0};
    char *text = NULL;
    size_t size = 0;
    write_file("[db]\npassword = hunter2 ;still the password\n");
    assert_ok(config_load(NULL, &cfg, &err));
    assert_string_equal(cfg->db_password, "hunter2 ;still the password");
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    config_show(cfg, out, true);
    assert_int_equal(fclose(out), 0);
    assert_null(strstr(text, "hunter2"));
    assert_non_null(strstr(text, "db.password = (set)"));
    free(text);
    assert_flag_refused("--db-password=x", "SLUICE_DB_PASSWORD_FILE");
}

static void a_secret_may_come_from_a_file(void **unused)
{
    (void)unused;
    AUTO(config_free) struct config *cfg = NULL;
    struct config *none = NULL;
    struct err err = {0};
    write_file("s3cret\n");
    set_variable("SLUICE_CONFIG", "");
    set_variable("SLUICE_DB_PASSWORD_FILE", path);
    assert_ok(config_load(NULL, &cfg, &err));
    assert_string_equal(cfg->db_password, "s3cret");
    set_variable("SLUICE_DB_PASSWORD", "other");
    assert_code(config_load(NULL, &none, &err), ERR_CONFIG);
    assert_non_null(strstr(err.text, "both set"));
    assert_null(strstr(err.text, "s3cret"));
}

static void unknown_settings_in_the_environment_are_refused(void **unused)
{
    (void)unused;
    struct config *cfg = NULL;
    struct err err = {0};
    set_variable("SLUICE_DB_HOTS", "x");
    assert_code(config_load(NULL, &cfg, &err), ERR_CONFIG);
    assert_non_null(strstr(err.text, "SLUICE_DB_HOTS"));
    assert_non_null(strstr(err.text, "did you mean SLUICE_DB_HOST?"));
}

static void other_variables_with_our_prefix_are_left_alone(void **unused)
{
    (void)unused;
    AUTO(config_free) struct config *cfg = NULL;
    struct err err = {0};
    set_variable("SLUICE_JOB_ID", "x");
    set_variable("SLUICE_FENCE", "7");
    set_variable("SLUICE_URL", "http://127.0.0.1:1");
    assert_ok(config_load(NULL, &cfg, &err));
    assert_string_equal(cfg->client_url, "http://127.0.0.1:1");
}

static void programs_have_flags_of_their_own(void **unused)
{
    (void)unused;
    AUTO(config_free) struct config *cfg = NULL;
    struct err err = {0};
    const char *tags[2];
    int rest = 0;
    struct config_flag flags[] = {
        {.name = "follow", .letter = 'f', .doc = "follow"},
        {.name = "errors", .letter = 'e', .doc = "errors"},
        {.name = "output", .letter = 'o', .argument = "FORMAT", .doc = "format"},
        {.name = "tag", .argument = "TAG", .doc = "tag", .list = tags, .list_max = 2},
        {.name = NULL},
    };
    char *words[] = {(char[]){"output"},  (char[]){"ID"},
                     (char[]){"-fe"},     (char[]){"-ojson"},
                     (char[]){"--tag"},   (char[]){"a"},
                     (char[]){"--tag=b"}, (char[]){"--"},
                     (char[]){"-x"},      NULL};
    for (int pass = 0; pass < 2; pass++) { /* a reload reads the same words again */
        assert_ok(load(words, flags, &cfg, &rest, &err));
        assert_int_equal(flags[0].count, 1);
        assert_int_equal(flags[1].count, 1);
        assert_string_equal(flags[2].value, "json");
        assert_int_equal(flags[3].count, 2);
        assert_string_equal(tags[1], "b");
        assert_int_equal(rest, 7);
        assert_string_equal(words[7], "ID");
        assert_string_equal(words[8], "-x");
        config_free(TAKE(cfg));
    }
}

static void a_command_after_the_flags_keeps_its_own(void **unused)
{
    (void)unused;
    AUTO(config_free) struct config *cfg = NULL;
    struct err err = {0};
    char *words[] = {(char[]){"sluice"}, (char[]){"--log-level=debug"}, (char[]){"run"},
                     (char[]){"--weird"}, NULL};
    struct config_args args = {.argc = 4, .argv = words, .stop_at_operand = true};
    assert_ok(config_load(&args, &cfg, &err));
    assert_string_equal(cfg->log_level, "debug");
    assert_int_equal(args.rest, 2);
}

static void unknown_flags_are_told_with_the_nearest(void **unused)
{
    (void)unused;
    assert_flag_refused("--db-hots=x", "unknown flag --db-hots; did you mean --db-host?");
    assert_flag_refused("--zzzzzzzzzzzzzz", "unknown flag --zzzzzzzzzzzzzz");
    assert_flag_refused("-z", "unknown flag -z");
    assert_flag_refused("--db-port=x", "from 1 to 65535");
}

static void every_setting_is_documented(void **unused)
{
    (void)unused;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    config_doc(out);
    config_usage(out, NULL);
    assert_int_equal(fclose(out), 0);
    assert_non_null(strstr(text, "## [db]"));
    assert_non_null(
        strstr(text, "| `queue_type` | `SLUICE_AMQP_QUEUE_TYPE` | quorum | quorum, classic |"));
    free(text);
}

static int clean_environment(void **unused)
{
    (void)unused;
    clearenv(); /* NOLINT(concurrency-mt-unsafe) */
    set_variable("SLUICE_CONFIG", "");
    return 0;
}

int main(void)
{
    snprintf(path, sizeof(path), "/tmp/test_config.XXXXXX");
    int fd = mkstemp(path);
    if (fd < 0)
        return 1;
    close(fd);
#define CLEAN(function) cmocka_unit_test_setup(function, clean_environment)
    const struct CMUnitTest tests[] = {
        CLEAN(defaults_stand_when_nothing_is_said),
        CLEAN(flags_win_over_environment_over_file),
        CLEAN(faults_in_the_file_name_line_key_value_and_limit),
        CLEAN(a_missing_file_is_a_fault_when_it_was_named),
        CLEAN(a_line_longer_than_the_limit_is_refused),
        CLEAN(secrets_are_not_printed_and_not_taken_from_flags),
        CLEAN(a_secret_may_come_from_a_file),
        CLEAN(unknown_settings_in_the_environment_are_refused),
        CLEAN(other_variables_with_our_prefix_are_left_alone),
        CLEAN(programs_have_flags_of_their_own),
        CLEAN(a_command_after_the_flags_keeps_its_own),
        CLEAN(unknown_flags_are_told_with_the_nearest),
        CLEAN(every_setting_is_documented),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
