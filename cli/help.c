/* SPDX-License-Identifier: Apache-2.0 */
/*
 * help.c -- prints the help: examples first, then the options with their defaults.
 */
#include <string.h>

#include "args.h"
#include "out.h"

enum { NAMES = 24 }; /* columns for option names */

static void heading(FILE *f, const char *words)
{
    out_paint(f, PAINT_BOLD);
    fprintf(f, "\n%s\n", words);
    out_paint(f, PAINT_PLAIN);
}

/* Prints text in lines of at most `width` columns, indented by `indent`. The first line starts at column `at`. */
static void wrapped(FILE *f, const char *text, int at, int indent, int width)
{
    while (*text) {
        const int n = (int)strcspn(text, " \n");
        if (at > indent && at + 1 + n > width) {
            fprintf(f, "\n%*s", indent, "");
            at = indent;
        } else if (at > indent) {
            putc(' ', f);
            at++;
        }
        fprintf(f, "%.*s", n, text);
        at += n;
        text += n;
        if (*text == '\n') {
            fprintf(f, "\n%*s", indent, "");
            at = indent;
        }
        text += *text != 0;
    }
    putc('\n', f);
}

static void default_of(const struct args *a, const struct args_option *o, char *buf, size_t n)
{
    char value[160];
    buf[0] = 0;
    args_show(a, o, value, sizeof value);
    if (o->kind == ARGS_ON || o->kind == ARGS_OFF) {
        if (value[0] == (o->kind == ARGS_ON ? '1' : '0'))
            snprintf(buf, n, " [default]");
        return;
    }
    const int typed = value[0] && strcmp(value, "0") != 0 && strncmp(value, "0.000", 5) != 0;
    if (typed && o->kind != ARGS_WORD)
        snprintf(buf, n, " [%s]", value);
    else if (o->standard)
        snprintf(buf, n, " [%s]", o->standard);
}

static void print_option(const struct args *a, const struct args_option *o, FILE *f, int width)
{
    char names[64], text[400], standard[200];
    char letter[8] = "";
    if (o->letter)
        snprintf(letter, sizeof letter, "-%c, ", o->letter);
    const int n =
        snprintf(names, sizeof names, "  %s--%s%s%s", letter, o->name, o->value ? " " : "", o->value ? o->value : "");
    default_of(a, o, standard, sizeof standard);
    snprintf(text, sizeof text, "%s%s", o->help, standard);
    fprintf(f, "%s%*s", names, n + 1 < NAMES ? NAMES - n : 1, "");
    wrapped(f, text, NAMES, NAMES, width);
}

static void print_options(const struct command *c, FILE *f, int width)
{
    struct args a = {.command = c};
    const struct args_option *o;
    int last_group = -1;
    if (c->defaults)
        c->defaults(&a);
    heading(f, "Options");
    for (int i = 0; (o = args_option_at(c, i)); i++) {
        if (last_group >= 0 && (int)o->group != last_group)
            putc('\n', f);
        last_group = (int)o->group;
        print_option(&a, o, f, width);
    }
}

void help_command(const struct command *c, FILE *f)
{
    const int columns = out_width(f), width = columns > 110 ? 110 : columns;
    out_paint(f, PAINT_BOLD);
    fprintf(f, "stoker %s%s%s", c->name, c->operand ? " " : "", c->operand ? c->operand : "");
    if (c->second)
        fprintf(f, c->both ? " %s" : " [%s]", c->second);
    fputs(" [options]\n", f);
    out_paint(f, PAINT_PLAIN);
    fputs("  ", f);
    wrapped(f, c->about, 2, 2, width);
    heading(f, "Examples");
    for (const char *const *e = c->examples; *e; e += 2) {
        fprintf(f, "  %s\n      ", e[0]);
        out_paint(f, PAINT_DIM);
        wrapped(f, e[1], 6, 6, width);
        out_paint(f, PAINT_PLAIN);
    }
    print_options(c, f, width);
    putc('\n', f);
    char ends[200];
    snprintf(ends, sizeof ends,
             "Exit status: 0 %s;%s%s%s 2 for wrong usage; 3 for a system error (cannot read, out of memory); "
             "130 if interrupted.",
             c->ends_0 ? c->ends_0 : "on success", c->ends_1 ? " 1 " : "", c->ends_1 ? c->ends_1 : "",
             c->ends_1 ? ";" : "");
    wrapped(f, ends, 0, 0, width);
}

void help_overview(const struct command *const *commands, FILE *f)
{
    out_paint(f, PAINT_BOLD);
    fprintf(f, "stoker %s", stk_version());
    out_paint(f, PAINT_PLAIN);
    fputs(" reads, decodes, transforms, shuffles and batches training data.\n", f);
    heading(f, "Start with");
    for (int i = 0; commands[i]; i++) {
        if (i == 3)
            heading(f, "Then");
        char line[64];
        const struct command *c = commands[i];
        snprintf(line, sizeof line, "stoker %s%s%s%s%s", c->name, c->operand ? " " : "", c->operand ? c->operand : "",
                 c->both ? " " : "", c->both ? c->second : "");
        fprintf(f, "  %-24s%s\n", line, commands[i]->summary);
    }
    fputs("\nSRC is a folder with one folder per class, a folder of images, a list (.csv .tsv .jsonl .txt), or a\n"
          "container: tar or zip shards, TFRecord, HDF5, npy, npz, text, tokens. Annotations: a COCO .json,\n"
          "'voc:FOLDER?set=train', yolo:, pairs: (images and masks), cityscapes:. For several files, write\n"
          "'train-{000..127}.tar' or 'train-*.tfrecord'.\n"
          "`stoker help COMMAND` shows examples and options. No data at hand? `stoker synth photos` makes some.\n",
          f);
}
