/* SPDX-License-Identifier: MIT */
#ifndef CLI_CLI_H
#define CLI_CLI_H

/* cli: what the commands share. One thread; everything lives until the process ends unless said
 * otherwise. Results go to stdout, messages to stderr. */

#include "cli/http.h"
#include "cli/resource.h"
#include "cli/site.h"
#include "common/base/err.h"
#include "common/config/config.h"

#include <jansson.h>

/* Exit statuses; `sluice run` also exits with the job's own. */
enum cli_exit { CLI_DONE = 0, CLI_REFUSED = 1, CLI_USAGE = 2, CLI_NO_CONNECTION = 3 };

enum cli_output { CLI_TABLE, CLI_JSON, CLI_NAME };

#define CLI_FLAG_LIST_MAX 64

struct cli {
    const struct cli_command *command;
    struct config *cfg;
    struct config_flag *flags; /* of the command and the common ones, as given */
    char **operands;
    int operand_count;
    enum cli_output output;
    struct http *http; /* opened at the first request */
    struct site site;  /* where that goes, and as whom */
};

struct cli_command {
    const char *name;
    const char *operands; /* as the usage line shows them */
    const char *doc;
    const char *examples;
    const char *group;   /* heading in `sluice help` */
    enum resource takes; /* kind of its operands, of the first one if they are of several */
    int least;           /* operands */
    int most;
    bool stop_at_operand; /* flags end at the first operand */
    struct config_flag *flags;
    int (*run)(struct cli *cli);
};

/* cmd_<id>() and flags_<id>[] of each row of command.def. */
#define COMMAND(id, name, operands, least, most, stop, group, takes, doc, examples)                \
    int cmd_##id(struct cli *cli);                                                                 \
    extern struct config_flag flags_##id[];
#include "cli/command.def"
#undef COMMAND

extern const struct cli_command cli_commands[];
extern const size_t cli_command_count;

/* In the flags of each command that prints a list and nothing else. */
#define CLI_WATCH_FLAG                                                                             \
    {                                                                                              \
        .name = "watch", .letter = 'w',                                                            \
        .doc = "show it again every two seconds, until interrupted"                                \
    }

const struct config_flag *cli_flag(const struct cli *cli, const char *name);
bool cli_has(const struct cli *cli, const char *name);
/* The value of a flag, or otherwise. */
const char *cli_value(const struct cli *cli, const char *name, const char *otherwise);
/* A flag that takes a whole number; exits with CLI_USAGE if it is none, or above most. */
uint32_t cli_number(const struct cli *cli, const char *name, uint32_t otherwise, uint32_t most);

/* One line on stderr; answers status. */
int cli_fail(int status, const char *format, ...) PRINTF_LIKE(2, 3);
int cli_fail_err(int status, const struct err *err);

/* The request to the chosen site. On a problem it is told on stderr and the exit
 * status is answered (CLI_REFUSED, CLI_NO_CONNECTION); CLI_DONE: *ret_json (may be NULL when the
 * answer has no JSON body) is the caller's to drop. body may be NULL. */
int cli_call(struct cli *cli, const char *method, const char *path, const json_t *body,
             json_t **ret_json);
/* All pages of the list at path, which has no query: the items of their member, the caller's to
 * drop. */
int cli_call_pages(struct cli *cli, const char *path, const char *member, json_t **ret_items);
/* As cli_call; *ret_answer is the caller's to http_answer_done, also on a problem. */
int cli_send(struct cli *cli, const struct http_request *request, struct http_answer *ret_answer);
/* What is at path now (NULL if nothing is), and the header line under which a PUT may change it, so
 * that a change by somebody else in between is noticed. */
int cli_read_to_change(struct cli *cli, const char *path, json_t **ret_now, char *ret_match,
                       size_t size);
/* PUTs body there under that line; *ret_made is what came back (NULL: no JSON), the caller's to
 * drop. */
int cli_put_changed(struct cli *cli, const char *path, const json_t *body, const char *match,
                    json_t **ret_made);
/* POST <base><operand>/<what> for each operand, "operand: told" for each that was done. All are
 * tried; the first refusal is the exit status. */
int cli_act_on_each(struct cli *cli, const char *base, const char *what, const char *told);
int cli_problem(const struct cli *cli, const struct http_answer *answer);
struct http *cli_http(struct cli *cli); /* NULL after telling why */

/* Puts the ids in place of operands that are a part of an id, or a worker's name. A part of four
 * characters or more, with which one id of the newest 1000 begins or ends. */
MUST_USE int ids_resolve(struct cli *cli);

/* Adds text to a URL, percent-encoded (RFC 3986 unreserved characters stay). */
void cli_url_add(struct buf *url, const char *text);

/* A table of an array's items: each column shows one member (dots go deeper: "output.stdout"). */
struct cli_column {
    const char *title;
    const char *member;
};
/* Prints as -o says: the table, the JSON itself, or the member name_member of each. */
void cli_print_list(const struct cli *cli, const json_t *items, const struct cli_column *columns,
                    size_t count, const char *name_member);
/* Prints one object: as JSON, or a line per member. */
void cli_print_object(const struct cli *cli, const json_t *object, const char *name_member);
/* The warnings of an answer, to standard error. */
void cli_warn(const json_t *answer);

/* Text from elsewhere: nothing of it must reach the terminal as an escape, or turn it around. '?'
 * stands for what could; '\n' and '\t' stay. */
void cli_make_inert(char *text);
void cli_put(FILE *out, const char *text);

const char *cli_text(const json_t *object, const char *member); /* "" if it is no string */

#define CLI_JSON_AUTO __attribute__((cleanup(cli_json_drop)))
void cli_json_drop(json_t **value);

#endif
