/* SPDX-License-Identifier: MIT */
#ifndef COMMON_MODEL_LIMITS_H
#define COMMON_MODEL_LIMITS_H

/* limits: what a request may hold. Every refusal names the one that was passed. Characters are
 * bytes of UTF-8. */

#define LIMIT_NAME_BYTES 128
#define LIMIT_COMMAND_WORDS 1024
/* Linux: MAX_ARG_STRLEN, include/uapi/linux/binfmts.h; it counts the NUL, and of a variable all of
 * NAME=value. */
#define LIMIT_WORD_BYTES (128 * 1024 - 1)
#define LIMIT_LAUNCH_BYTES (1024 * 1024) /* command, args and env together */
#define LIMIT_ENV_COUNT 512
#define LIMIT_ENV_NAME_BYTES 128
#define LIMIT_INPUT_COUNT 256
#define LIMIT_INLINE_BYTES (1024 * 1024) /* of all inline contents together */
#define LIMIT_URL_BYTES 4096
#define LIMIT_PATH_BYTES 1024
#define LIMIT_PATTERN_COUNT 64
#define LIMIT_PATTERN_BYTES 512
#define LIMIT_TAG_COUNT 32
#define LIMIT_TAG_BYTES 64
#define LIMIT_NOTES_BYTES 4096
#define LIMIT_KEY_BYTES 128
#define LIMIT_NODES 100000
#define LIMIT_CORES 4096
#define LIMIT_MEMORY_MB (16 * 1024 * 1024)
#define LIMIT_MINUTES (365 * 24 * 60)
#define LIMIT_JSON_DEPTH 32
#define LIMIT_JSON_VALUES 100000 /* and names of members: built, each takes about 200 bytes */

#endif
