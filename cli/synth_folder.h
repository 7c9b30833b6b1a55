/* SPDX-License-Identifier: Apache-2.0 */
/*
 * synth_folder.h -- the folder that `stoker synth` writes: names, and a note of what it was made with.
 */
#ifndef SYNTH_FOLDER_H
#define SYNTH_FOLDER_H

#include "args.h"
#include "stoker.h"

enum { SYNTH_PATH = 4096 };

stk_format synth_format_of(const struct args_synth *s, int64_t index);
/* OUT/class/class_000017.jpg; -1 when it is too long. */
int synth_path(const char *out, const struct args_synth *s, int64_t index, char *buf, size_t n);

/* Makes the folder ready: refuses one with foreign files, removes what another synth made, makes the
 * class folders. *keep: pictures that are there already are the right ones. An END_*. */
int synth_folder_open(const struct args *a, int *keep);
/* Notes what was made, so that the next call knows it. */
int synth_folder_note(const struct args *a, int complete, stk_error *e);

#endif
