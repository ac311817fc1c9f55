/* SPDX-License-Identifier: MIT */
#include "common/model/job_state.h"

#define TO(name) (1u << JOB_##name)
#define LEAVE (TO(BLOCKED) | TO(PAUSED) | TO(CANCELLED) | TO(FAILED))
#define ACTIVE                                                                                     \
    (TO(PENDING) | TO(PROCESSING_INPUTS) | TO(STAGING_INPUTS) | TO(STAGING_JOB) |                  \
     TO(SUBMITTING_JOB) | TO(QUEUED) | TO(RUNNING) | TO(ARCHIVING))

static const struct {
    const char *text;
    bool ends;
    unsigned next;
} state_table[JOB_STATE_COUNT] = {
#define JOB_STATE(name, text, ends, next) [JOB_##name] = {text, ends, next},
#include "common/model/job_state.def"
#undef JOB_STATE
};

static const struct {
    const char *text;
    int rank;
    const char *meaning;
} condition_table[JOB_CONDITION_COUNT] = {
#define JOB_CONDITION(name, rank, meaning) [JOB_COND_##name] = {#name, rank, meaning},
#include "common/model/condition.def"
#undef JOB_CONDITION
};

const char *job_state_text(enum job_state state)
{
    return state_table[state].text;
}

bool job_state_parse(struct sv text, enum job_state *ret_state)
{
    for (int i = 0; i < JOB_STATE_COUNT; i++) {
        if (sv_is(text, state_table[i].text)) {
            *ret_state = (enum job_state)i;
            return true;
        }
    }
    return false;
}

bool job_state_can(enum job_state from, enum job_state to)
{
    return (state_table[from].next >> to & 1u) != 0;
}

bool job_state_ends(enum job_state state)
{
    return state_table[state].ends;
}

bool job_state_is_active(enum job_state state)
{
    return (ACTIVE >> state & 1u) != 0;
}

bool job_state_has_run(enum job_state state)
{
    return state >= JOB_SUBMITTING_JOB && state <= JOB_ARCHIVING;
}

const char *job_condition_text(enum job_condition condition)
{
    return condition == JOB_COND_NONE ? "" : condition_table[condition].text;
}

const char *job_condition_meaning(enum job_condition condition)
{
    return condition_table[condition].meaning;
}

bool job_condition_parse(struct sv text, enum job_condition *ret_condition)
{
    if (text.len == 0) {
        *ret_condition = JOB_COND_NONE;
        return true;
    }
    for (int i = JOB_COND_NONE + 1; i < JOB_CONDITION_COUNT; i++) {
        if (sv_is(text, condition_table[i].text)) {
            *ret_condition = (enum job_condition)i;
            return true;
        }
    }
    return false;
}

enum job_condition job_condition_keep(enum job_condition old, enum job_condition new_one)
{
    return condition_table[new_one].rank > condition_table[old].rank ? new_one : old;
}
