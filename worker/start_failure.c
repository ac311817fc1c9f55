/* SPDX-License-Identifier: MIT */
#include "worker/start_failure.h"

#include "common/base/last_line.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_SIZE 160
#define PLACE_SIZE 100

struct failure {
    const struct runner_record *record;
    const char *program;
    const struct start_place *place;
    char on_host[PLACE_SIZE]; /* " on host vm", or "" */
    char *reason;
};

static const char *path_of(const struct start_place *place)
{
    for (size_t i = 0; place->env && place->env[i]; i++) {
        if (strncmp(place->env[i], "PATH=", 5) == 0)
            return place->env[i] + 5;
    }
    return NULL;
}

/* ---- the interpreter of a script ------------------------------------------------------------- */

/* Of "#!/opt/none/python -u": the program. */
static bool read_first_line(const char *path, char *ret_interpreter, size_t size)
{
    char line[LINE_SIZE];
    FD_AUTO int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    ssize_t got = read(fd, line, sizeof(line) - 1);
    if (got < 3 || line[0] != '#' || line[1] != '!')
        return false;
    line[got] = 0;
    const char *begin = line + 2 + strspn(line + 2, " \t");
    size_t length = strcspn(begin, " \t\n");
    (void)text_quotable((struct sv){begin, length}, ret_interpreter, size);
    return length > 0;
}

/* name beneath folder; what does not begin with a '/' begins in the job's own folder. */
static bool read_in(const struct failure *failure, struct sv folder, char *ret_interpreter,
                    size_t size)
{
    char path[PATH_MAX];
    const char *home = failure->place->home ? failure->place->home : "";
    bool whole = folder.len > 0 && folder.ptr[0] == '/';
    (void)snprintf(path, sizeof(path), "%s/%.*s/%s", whole ? "" : home, (int)folder.len, folder.ptr,
                   failure->program);
    return read_first_line(path, ret_interpreter, size);
}

static bool find_interpreter(const struct failure *failure, char *ret_interpreter, size_t size)
{
    const char *at = path_of(failure->place);
    if (failure->program[0] == '/')
        return read_first_line(failure->program, ret_interpreter, size);
    if (strchr(failure->program, '/'))
        return read_in(failure, sv_of("."), ret_interpreter, size);
    while (at) {
        size_t length = strcspn(at, ":");
        if (read_in(failure, (struct sv){at, length}, ret_interpreter, size))
            return true;
        at = at[length] ? at + length + 1 : NULL;
    }
    return false;
}

/* ---- one function per kind ------------------------------------------------------------------- */

static void no_interpreter(const struct failure *failure)
{
    char interpreter[LINE_SIZE];
    if (find_interpreter(failure, interpreter, sizeof(interpreter)))
        (void)snprintf(failure->reason, JOB_REASON_SIZE,
                       "cannot start '%.80s': the file is there, but its interpreter %.70s (first "
                       "line) is not%s (ENOENT); correct that line, or name one before the file",
                       failure->program, interpreter, failure->on_host);
    else
        (void)snprintf(failure->reason, JOB_REASON_SIZE,
                       "cannot start '%.150s': the file is there%s, but the interpreter or loader "
                       "that it names is not (ENOENT)",
                       failure->program, failure->on_host);
}

static void no_program(const struct failure *failure)
{
    const char *path = path_of(failure->place);
    if (strchr(failure->program, '/'))
        (void)snprintf(
            failure->reason, JOB_REASON_SIZE,
            "cannot start '%.180s': there is no such file%s (ENOENT)%s", failure->program,
            failure->on_host,
            failure->program[0] == '/'
                ? "; correct the path, or install it there"
                : "; a relative path begins in the job's own folder, which holds its inputs");
    else
        (void)snprintf(failure->reason, JOB_REASON_SIZE,
                       "cannot start '%.80s': no such program in PATH=%.110s%s (ENOENT); give the "
                       "full path, or another PATH (--env PATH=...)",
                       failure->program, path ? path : "", failure->on_host);
}

static void not_allowed(const struct failure *failure)
{
    (void)snprintf(failure->reason, JOB_REASON_SIZE,
                   "cannot start '%.150s': user %u of jobs may not execute it%s (EACCES); make it "
                   "executable (chmod +x), or name its interpreter before it",
                   failure->program, (unsigned)failure->place->user, failure->on_host);
}

static void too_long(const struct failure *failure)
{
    (void)snprintf(failure->reason, JOB_REASON_SIZE,
                   "cannot start '%.150s': its arguments and environment are too long together%s "
                   "(E2BIG); send long texts as input files",
                   failure->program, failure->on_host);
}

static void other(const struct failure *failure)
{
    (void)snprintf(failure->reason, JOB_REASON_SIZE, "cannot start '%.200s': %s at step %s%s",
                   failure->program, failure->record->start_error, failure->record->start_step,
                   failure->on_host);
}

static const struct {
    const char *step;
    const char *error;
    void (*tell)(const struct failure *failure);
} kinds[] = {
    {RUNNER_STEP_INTERPRETER, "ENOENT", no_interpreter},
    {"exec", "ENOENT", no_program},
    {"exec", "EACCES", not_allowed},
    {"exec", "E2BIG", too_long},
};

void start_failure_tell(const struct runner_record *record, const char *program,
                        const struct start_place *place, char ret_reason[JOB_REASON_SIZE])
{
    struct failure failure = {
        .record = record, .program = program, .place = place, .reason = ret_reason};
    if (place->host)
        (void)snprintf(failure.on_host, sizeof(failure.on_host), " on host %.80s", place->host);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (strcmp(record->start_step, kinds[i].step) == 0 &&
            strcmp(record->start_error, kinds[i].error) == 0) {
            kinds[i].tell(&failure);
            return;
        }
    }
    other(&failure);
}
