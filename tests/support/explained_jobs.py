# SPDX-License-Identifier: MIT
"""explained_jobs: rows of tests/scenario/test_explained_jobs.py: recovery groups, and how runs ended."""

from explained_row import NONE, Row

ENDED = {
    "exit code": Row("a command ends with exit code 3",
                     "its last line of stderr, as its own words", "code and time", "its output"),
    "hostile last line": Row("its last line of stderr would deceive a reader",
                             "what may be shown of it, marked as its words", "200 bytes of it", NONE),
    "no such program": Row("a command is in no folder of PATH", "no such program",
                           "the PATH and the host", "the full path, or another PATH"),
    "not executable": Row("a file without the right to execute", "it may not be executed",
                          "by which user, on which host", "chmod +x, or an interpreter"),
    "no interpreter": Row("a script names an interpreter that is not there",
                          "the file is there, its interpreter is not", "which one", "correct the line"),
    "crash": Row("a command crashes", "what the signal means", "its number", "its output"),
    "killed from outside": Row("somebody on the host kills a command",
                               "it was not Sluice, mostly the kernel", "its peak of memory",
                               "run it again"),
    "memory limit": Row("a program says that it got no memory", "the limit of memory was too low",
                        "limit and peak", "more with --memory-mb"),
    "memory limit, crash": Row("a program with a limit of memory dies of a signal",
                               "the limit may be the cause", "the limit", "more with --memory-mb"),
    "time limit": Row("a job runs longer than its limit", "the limit of its request",
                      "the limit, and the most that there is", "--max-minutes"),
    "output cut": Row("a job writes more than is kept", "what is not kept",
                      "how much of how much, and the setting", "a file and --keep"),
    "nothing to keep": Row("--keep matches no file", "no file matched", "the pattern",
                           "where paths begin"),
    "archive limit": Row("more is to be archived than may be", "more than is allowed",
                         "how much there is, the limit, the setting", "keep less"),
    "cancelled while it ran": Row("somebody else cancels a job", "who, while it was under way",
                                  "when, after how long", "run it again"),
    "SIGTERM ignored": Row("a job that is to be cancelled ignores SIGTERM",
                           "who asked, and what it got", "when it is killed", NONE),
}

INPUTS = {
    "input 404": Row("the server of an input answers 404", "404 not found, of which address",
                     "the status", "correct the address"),
    "input 500": Row("the server of an input answers 500", "a fault of that server, which address",
                     "the status", "later again"),
    "input too large": Row("an input is larger than allowed", "it is too large",
                           "size, limit, setting", "run it again"),
    "input too slow": Row("an input comes too slowly", "it took too long",
                          "the limit, and how much came", "run it again"),
    "input beneath no root": Row("a file: input lies in no allowed folder",
                                 "it is beneath none of the folders", "which path, how many are set",
                                 "another folder, or send it along"),
    "link-local input": Row("an input leads to a link-local address", "why it is refused",
                            "which address, which setting", "run it again"),
    "secret in an address": Row("the address of an input has credentials",
                                "the address without them", "the status", NONE),
}

DISKS = {
    "work disk full": Row("the worker's disk is full while inputs are fetched",
                          "the disk of its host", "what is free of how much", "it is tried again"),
    "archive disk full": Row("the disk of outputs is full", "the disk, no fault of the job",
                             "what is free of how much", "who makes room, then again"),
}

ROWS = ENDED | INPUTS | DISKS
