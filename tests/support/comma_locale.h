/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comma_locale.h -- a locale with a decimal comma, compiled for this test run. localedef comes with the C library; the
 * character map and the locale are written here, so no package of locales is needed.
 */
#ifndef COMMA_LOCALE_H
#define COMMA_LOCALE_H

#include <locale.h>
#include <stdlib.h>

#include "support/temp_tree.h"
#include "test.h"

static inline void comma_write_charmap(const char *path)
{
    FILE *f = fopen(path, "w");
    if (!f)
        return;
    fprintf(f, "<code_set_name> ANSI_X3.4-1968\n<comment_char> %%\n<escape_char> /\nCHARMAP\n");
    for (int c = 0; c < 128; c++)
        fprintf(f, "<U%04X> /x%02x C%d\n", (unsigned)c, (unsigned)c, c);
    fprintf(f, "END CHARMAP\n");
    fclose(f);
}

/* Enters the locale. Returns false, after a failed check, if the system cannot make one. comma_leave() returns to "C".
 * */
static inline bool comma_enter(void)
{
    char folder[PATH_MAX], charmap[PATH_MAX], command[4 * PATH_MAX];
    temp_file("locale/comma.def", "comment_char %\nescape_char /\nLC_NUMERIC\ndecimal_point \"<U002C>\"\n"
                                  "thousands_sep \"<U002E>\"\ngrouping 3;3\nEND LC_NUMERIC\n");
    snprintf(folder, sizeof folder, "%.4000s", temp_path("locale"));
    snprintf(charmap, sizeof charmap, "%.4000s/ascii", folder);
    comma_write_charmap(charmap);
    /* It exits with 1 because the other categories are missing, which -c allows. */
    snprintf(command, sizeof command, "cd '%s' && { localedef -c -i comma.def -f ./ascii ./comma >log 2>&1 || :; }",
             folder);
    CHECK_EQ(system(command), 0);
    setenv("LOCPATH", folder, 1);
    const bool entered = setlocale(LC_ALL, "comma") != NULL && localeconv()->decimal_point[0] == ',';
    CHECK(entered);
    return entered;
}

static inline void comma_leave(void)
{
    setlocale(LC_ALL, "C");
}

#endif
