/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c -- the command `stoker`: finds the subcommand and runs it.
 */
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "base/nearest.h"
#include "out.h"
#include "stop.h"

/* In the order of the overview, the three most useful ones first. */
static const struct command *const commands[] = {&cmd_ls,       &cmd_bench, &cmd_show,   &cmd_doctor, &cmd_verify,
                                                 &cmd_checksum, &cmd_pack,  &cmd_unpack, &cmd_cat,    &cmd_index,
                                                 &cmd_synth,    &cmd_info,  &cmd_cache,  NULL};

static const struct command *find(const char *name)
{
    for (int i = 0; commands[i]; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static int unknown(const char *name)
{
    struct nearest n = {.word = name, .prefix = "stoker "};
    for (int i = 0; commands[i]; i++)
        nearest_try(&n, commands[i]->name, strlen(commands[i]->name));
    if (n.found)
        out_say(NULL, "there is no command '%s'%s", name, nearest_hint(&n));
    else
        out_say(NULL, "there is no command '%s'; `stoker` alone lists them", name);
    return END_USAGE;
}

static int help(const char *name)
{
    const struct command *c = name ? find(name) : NULL;
    if (name && !c)
        return unknown(name);
    if (c)
        help_command(c, stdout);
    else
        help_overview(commands, stdout);
    return END_GOOD;
}

/* Searches before parsing, because parsing may fail at an earlier option. */
static int wants_json(int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--json") == 0)
            return 1;
    return 0;
}

static int run(const struct command *c, int argc, char **argv)
{
    struct args a;
    int end = c->instead ? c->instead(argc, argv) : -1;
    if (end != -1)
        return end;
    end = args_parse(&a, c, argc, argv);
    if (end == -1)
        end = help(c->name);
    else if (end == END_GOOD)
        end = c->run(&a);
    args_done(&a);
    if (wants_json(argc, argv))
        out_json_failure(end);
    return end;
}

static int is(const char *word, const char *a, const char *b)
{
    return strcmp(word, a) == 0 || strcmp(word, b) == 0;
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "help";
    int end = END_GOOD;
    stop_watch();
    if (is(word, "--help", "-h") || is(word, "help", "help"))
        end = help(argc > 2 ? argv[2] : NULL);
    else if (is(word, "--version", "-V"))
        printf("stoker %s\n", stk_version());
    else if (find(word))
        end = run(find(word), argc - 2, argv + 2);
    else
        end = unknown(word);
    return out_close(find(word) ? word : NULL, end);
}
