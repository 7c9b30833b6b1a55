/* SPDX-License-Identifier: Apache-2.0 */
/*
 * synth_folder.h -- the folder that `stoker synth` writes: file names, and a file with the settings.
 */
#ifndef SYNTH_FOLDER_H
#define SYNTH_FOLDER_H

#include "args.h"
#include "stoker.h"

enum { SYNTH_PATH = 4096 };

stk_format synth_format_of(const struct args_synth *s, int64_t index);
/* OUT/class/class_000017.jpg. Returns -1 if it is too long. */
int synth_path(const char *out, const struct args_synth *s, int64_t index, char *buf, size_t n);

/* Prepares the folder: refuses one with other files, removes images made with other settings, creates the
 * class folders. *keep: existing images have the right settings. Returns an END_*. */
int synth_folder_open(const struct args *a, int *keep);
/* Stores the settings for the next call. */
int synth_folder_write_recipe(const struct args *a, int complete, stk_error *e);

#endif
