/* SPDX-License-Identifier: MIT */
#ifndef CLI_REQUEST_H
#define CLI_REQUEST_H

/* request: a job request from the flags of run, submit and explain. */

#include "cli/cli.h"

/* The flags; put into a table with REQUEST_FLAGS(lists), one struct request_lists per command. */
struct request_lists {
    const char *env[CLI_FLAG_LIST_MAX];
    const char *tags[CLI_FLAG_LIST_MAX];
    const char *inputs[CLI_FLAG_LIST_MAX];
    const char *keep[CLI_FLAG_LIST_MAX];
};

#define REQUEST_FLAGS(lists)                                                                       \
    {.name = "name", .letter = 'n', .argument = "TEXT", .doc = "name of the job"},                 \
        {.name = "env",                                                                            \
         .letter = 'e',                                                                            \
         .argument = "NAME=VALUE",                                                                 \
         .doc = "a variable of its environment; may be repeated",                                  \
         .list = (lists).env,                                                                      \
         .list_max = CLI_FLAG_LIST_MAX},                                                           \
        {.name = "tag",                                                                            \
         .letter = 't',                                                                            \
         .argument = "TAG",                                                                        \
         .doc = "a tag; may be repeated",                                                          \
         .list = (lists).tags,                                                                     \
         .list_max = CLI_FLAG_LIST_MAX},                                                           \
        {.name = "input",                                                                          \
         .letter = 'i',                                                                            \
         .argument = "FILE|URL[=TARGET]",                                                          \
         .doc = "an input file; a local one is sent along; may be repeated",                       \
         .list = (lists).inputs,                                                                   \
         .list_max = CLI_FLAG_LIST_MAX},                                                           \
        {.name = "keep",                                                                           \
         .letter = 'k',                                                                            \
         .argument = "GLOB",                                                                       \
         .doc = "files to archive at the end; may be repeated",                                    \
         .list = (lists).keep,                                                                     \
         .list_max = CLI_FLAG_LIST_MAX},                                                           \
        {.name = "memory-mb", .letter = 'm', .argument = "MB", .doc = "memory limit"},             \
        {.name = "cores", .argument = "N", .doc = "cores per node"},                               \
        {.name = "nodes", .argument = "N", .doc = "nodes"},                                        \
        {.name = "max-minutes", .argument = "N", .doc = "limit of wall-clock time"},               \
        {.name = "max-seconds", .argument = "N", .doc = "the same in seconds"},                    \
        {.name = "system", .argument = "ID", .doc = "system to run on"},                           \
        {.name = "app", .argument = "ID/VERSION", .doc = "application to run"},                    \
        {.name = "notes", .argument = "TEXT", .doc = "free text kept with the job"},               \
        {.name = "key",                                                                            \
         .argument = "KEY",                                                                        \
         .doc = "idempotency key: the same key and request give the same job"},                    \
    {                                                                                              \
        .name = "file", .letter = 'f', .argument = "JSON",                                         \
        .doc = "a request to begin with; - for stdin"                                              \
    }

/* A JSON file, - for stdin; ret_json is the caller's to drop. */
int request_read_json(const char *path, json_t **ret_json);

/* ret_request is the caller's to drop. */
int request_build(const struct cli *cli, json_t **ret_request);

#endif
