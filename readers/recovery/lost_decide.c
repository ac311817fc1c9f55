/* SPDX-License-Identifier: MIT */
#include "readers/recovery/lost.h"

/* Messages of jobs that were cancelled lie in a queue until a worker takes them, and hide as many
 * lost ones. So a few jobs that were passed get a message even if the numbers agree. */
#define HIDDEN_AT_ONCE 8

/* A few messages of the outbox that the broker has already: their rows live for a moment longer. */
#define FEW_UNSENT 64

/* Jobs without a message that is ready: lost, unsent, or in transit. */
static int64_t lacking(const struct lost_sample *sample)
{
    return (int64_t)sample->waiting - (int64_t)sample->ready;
}

static int64_t less(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* A message in transit is neither ready nor is its job owned. Consumers hold one each; and where
 * nothing moves, nothing is in transit. */
static int64_t in_transit(const struct lost_sample *first, const struct lost_sample *second)
{
    if (!second->moved)
        return 0;
    return first->consumers > second->consumers ? first->consumers : second->consumers;
}

void lost_join(struct lost_sample *sample, const struct lost_sample *more)
{
    bool moved = sample->moved || more->moved;
    if (lacking(more) < lacking(sample))
        *sample = *more;
    sample->moved = moved;
}

static int64_t count_sure(const struct lost_sample *first, const struct lost_sample *second)
{
    int64_t lack = less(lacking(first), lacking(second));
    int64_t sent =
        less(lacking(first) - (int64_t)first->unsent, lacking(second) - (int64_t)second->unsent);
    int64_t sure = sent - in_transit(first, second);
    if (!second->moved && second->unsent <= FEW_UNSENT)
        sure = lack;
    return sure > 0 ? sure : 0;
}

struct lost_verdict lost_decide(const struct lost_sample *first, const struct lost_sample *second,
                                int64_t before_us, int64_t margin_us)
{
    int64_t lack = less(lacking(first), lacking(second));
    int64_t sure = count_sure(first, second);
    struct lost_verdict verdict = {.sure = (uint64_t)sure};
    if (lack > sure && first->passed_us > margin_us) {
        verdict.passed = (uint64_t)(lack - sure);
        verdict.before_us = first->passed_us - margin_us;
    } else if (lack <= 0 && before_us > margin_us && first->passed_us > before_us) {
        verdict.passed = HIDDEN_AT_ONCE;
        verdict.before_us = before_us - margin_us;
    }
    return verdict;
}
