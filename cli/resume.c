/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resume.c -- the file of --state.
 *
 *     {"stoker_run": "checksum", "loader": {...}, "first": 0, "epochs": 2, "position": 640,
 *      "samples": 640, "hash": "...", "options": {"ops": "...", "seed": "7", ...}}
 */
#include "resume.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "file.h"
#include "out.h"

enum { MAX_FILE = 1 << 16 };

/* ------------------------------------------------------------------ which options */

static int decides_bits(const struct args_option *o)
{
    return (o->group & (FOR_PIXELS | FOR_FORM)) || strcmp(o->name, "take") == 0;
}

static int is_kept(const struct args_option *o)
{
    static const char *const others[] = {"batch-size", "drop-last", "pad-last", "on-error"};
    if (o->kind == ARGS_OFF) /* the flag that sets it is stored for both */
        return 0;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(o->name, others[i]) == 0)
            return 1;
    return decides_bits(o);
}

/* Whether the option or its opposite was typed. */
static int was_typed(const struct args *a, const struct args_option *o)
{
    const struct args_option *other;
    for (int i = 0; (other = args_option_at(a->command, i)); i++)
        if (other->at == o->at && args_given(a, other->name))
            return 1;
    return 0;
}

/* ------------------------------------------------------------------ loading */

static int bad_file(const struct args *a, const char *what)
{
    out_say(a->command->name, "%s: %s; delete it to start again", a->state, what);
    return END_USAGE;
}

static int set_kept(struct resume *r, struct args *a, const struct args_option *o, const char *text)
{
    if (o->kind == ARGS_ON) {
        *(int *)((char *)a + o->at) = strcmp(text, "1") == 0;
        return END_GOOD;
    }
    if (text[0] == 0 || strcmp(text, "0") == 0)
        return END_GOOD; /* the default */
    if (o->kind != ARGS_TEXT)
        return args_set(a, o, text);
    if (r->n_texts == (int)(sizeof r->texts / sizeof r->texts[0]))
        return END_MACHINE;
    char *copy = strdup(text);
    if (!copy)
        return END_MACHINE;
    r->texts[r->n_texts++] = copy;
    return args_set(a, o, copy);
}

static int load_option(struct resume *r, struct args *a, const struct args_option *o, const char *then)
{
    char now[4096];
    if (!was_typed(a, o))
        return set_kept(r, a, o, then);
    args_show(a, o, now, sizeof now);
    if (!decides_bits(o) || strcmp(then, now) == 0)
        return END_GOOD;
    out_say(a->command->name, "%s was saved with --%s %s, but now it is %s; use the same value, or delete the file",
            a->state, o->name, then, now);
    return END_USAGE;
}

static int load_options(struct resume *r, struct args *a, struct json_value options)
{
    const struct args_option *o;
    struct buf then = {0};
    int end = END_GOOD;
    for (int i = 0; end == END_GOOD && (o = args_option_at(a->command, i)); i++) {
        if (!is_kept(o))
            continue;
        then.len = 0;
        end = json_get_text(json_find(options, o->name), &then) ? load_option(r, a, o, (const char *)then.data)
                                                                : bad_file(a, "it is not a state of this version");
    }
    buf_done(&then);
    return end;
}

static int load_numbers(struct resume *r, struct args *a, struct json_value d)
{
    struct buf command = {0};
    const bool found = json_get_text(json_find(d, "stoker_run"), &command);
    const bool ours = found && strcmp((const char *)command.data, a->command->name) == 0;
    buf_done(&command);
    if (!ours)
        return bad_file(a, found ? "it is the state of another command" : "it is not a state of stoker");
    const struct json_value loader = json_find(d, "loader");
    const size_t n = json_bytes(loader);
    if (n == 0 || n >= sizeof r->loader)
        return bad_file(a, "it has no state of a loader");
    memcpy(r->loader, loader.p, n);
    r->loader[n] = 0;
    return json_get_int(json_find(d, "first"), &r->first) && json_get_int(json_find(d, "epochs"), &r->epochs) &&
                   json_get_int(json_find(d, "position"), &r->position) &&
                   json_get_int(json_find(d, "samples"), &r->samples) && json_get_hex(json_find(d, "hash"), &r->hash)
               ? END_GOOD
               : bad_file(a, "it is damaged");
}

int resume_load(struct resume *r, struct args *a)
{
    *r = (struct resume){.epochs = a->epochs};
    if (!a->state)
        return END_GOOD;
    stk_error e;
    char *text;
    size_t n;
    const int rc = file_read(a->state, MAX_FILE, &text, &n, &e);
    if (rc == STK_ENOTFOUND)
        return END_GOOD;
    if (rc != STK_OK)
        return out_fail(a->command->name, rc, &e);
    const struct json_value d = json_document(text, n);
    int end = load_numbers(r, a, d);
    if (end == END_GOOD)
        end = load_options(r, a, json_find(d, "options"));
    free(text);
    if (args_given(a, "epochs"))
        r->epochs = a->epochs;
    r->found = end == END_GOOD;
    return end;
}

int resume_apply(const struct resume *r, const struct args *a, stk_loader *l)
{
    stk_error e = {.sample = -1};
    const int rc = r->found ? stk_state_set(l, r->loader, &e) : STK_OK;
    return rc == STK_OK ? END_GOOD : out_fail(a->command->name, rc, &e);
}

/* ------------------------------------------------------------------ saving */

static void write_options(struct json *j, const struct args *a)
{
    char text[4096];
    const struct args_option *o;
    json_open(j, "options", '{');
    for (int i = 0; (o = args_option_at(a->command, i)); i++) {
        if (!is_kept(o))
            continue;
        args_show(a, o, text, sizeof text);
        json_text(j, o->name, text);
    }
    json_close(j, '}');
}

int resume_save(struct resume *r, const struct args *a, stk_loader *l)
{
    if (!a->state)
        return END_GOOD;
    char *text = NULL;
    size_t n = 0;
    stk_error e = {.code = STK_ENOMEM, .sample = -1, .text = "no memory for the state"};
    FILE *f = open_memstream(&text, &n);
    if (!f)
        return out_fail(a->command->name, STK_ENOMEM, &e);
    stk_state_get(l, r->loader, sizeof r->loader);
    struct json j = {.f = f};
    json_open(&j, NULL, '{');
    json_text(&j, "stoker_run", a->command->name);
    json_raw(&j, "loader", r->loader);
    json_int(&j, "first", r->first);
    json_int(&j, "epochs", r->epochs);
    json_int(&j, "position", r->position);
    json_int(&j, "samples", r->samples);
    json_hex(&j, "hash", r->hash);
    write_options(&j, a);
    json_close(&j, '}');
    int rc = fclose(f) == 0 ? STK_OK : STK_ENOMEM;
    if (rc == STK_OK)
        rc = file_write(a->state, text, n, &e);
    free(text);
    return rc == STK_OK ? END_GOOD : out_fail(a->command->name, rc, &e);
}

void resume_done(struct resume *r)
{
    for (int i = 0; i < r->n_texts; i++)
        free(r->texts[i]);
    r->n_texts = 0;
}
