/* SPDX-License-Identifier: MIT */
#include "common/base/nearest.h"

void nearest_add_known(char *list, size_t size, const char *known)
{
    static const char more[] = ", ...";
    size_t used = strlen(list);
    if (used >= sizeof(more) && strcmp(list + used - strlen(more), more) == 0)
        return;
    if (used + strlen(known) + 2 * sizeof(more) > size)
        known = "...";
    (void)snprintf(list + used, size - used, "%s%s", used ? ", " : "", known);
}

void nearest_try(struct nearest *nearest, const char *known)
{
    struct sv text = sv_of(known);
    size_t far = sv_distance(nearest->name, text);
    if (far > nearest->name.len / 3 + 1 || far >= text.len ||
        (nearest->best && far >= nearest->best_distance))
        return;
    nearest->best = known;
    nearest->best_distance = far;
}
