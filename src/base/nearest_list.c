/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nearest_list.c -- lists known names in an error: as many as fit, and how many more there are.
 *
 * It is separate from nearest.c, which the command links without the engine's errors.
 */
#include "base/nearest_list.h"

#include <string.h>

#include "base/error.h"

enum { LISTED_MAX = 300 /* bytes of names in an error */ };

void nearest_list_add(struct nearest_list *l, const char *name)
{
    nearest_try(&l->like, name, strlen(name));
    l->all.max = LISTED_MAX;
    l->shown += l->shown == l->n && buf_printf(&l->all, "%s%s", l->n > 0 ? ", " : "", name) == 0;
    l->n++;
}

int nearest_list_error(struct nearest_list *l, const char *before, const char *noun, stk_error *e)
{
    l->all.max = LISTED_MAX + 32;
    if (l->shown < l->n)
        buf_printf(&l->all, "%s%d %s", l->shown ? " and " : "", l->n - l->shown, l->shown ? "more" : "with long names");
    const int rc = error_set(e, STK_EUSAGE, "open", "%s %s %.100s; the %s%s %s %.*s%s", before, noun, l->like.word,
                             noun, l->n == 1 ? "" : "s", l->n == 1 ? "is" : "are", l->all.len > 0 ? (int)l->all.len : 4,
                             l->all.len > 0 ? (char *)l->all.data : "none", nearest_hint(&l->like));
    buf_done(&l->all);
    return rc;
}
