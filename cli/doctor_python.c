/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_python.c -- stoker doctor for a training script: the Python package does the work.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"
#include "out.h"

/* -m alone would end with 1 if the package is missing, and 1 means "something to gain". */
static const char start[] =
    "import importlib.util, runpy, sys\n"
    "if not importlib.util.find_spec('stoker') or not importlib.util.find_spec('stoker.doctor'):\n"
    "    sys.stderr.write('stoker doctor: ' + sys.executable + ' does not have the Python package stoker; install it "
    "'\n"
    "                     '(see docs/python.md), or set STOKER_PYTHON to a Python that has it\\n')\n"
    "    sys.exit(3)\n"
    "try:\n"
    "    runpy.run_module('stoker.doctor', run_name='__main__', alter_sys=True)\n"
    "except KeyboardInterrupt:\n" /* while modules are imported; the doctor itself reports what is known */
    "    sys.exit(130)\n";

static int ends_with(const char *word, const char *end)
{
    const size_t n = strlen(word), m = strlen(end);
    return n > m && strcmp(word + n - m, end) == 0;
}

/* A .py file, a command after --, or two reports. Anything else is data. */
static int is_for_python(int argc, char **argv)
{
    if (argc > 0 && strcmp(argv[0], "compare") == 0)
        return 1;
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--") == 0 || ends_with(argv[i], ".py"))
            return 1;
    return 0;
}

/* The Python of the virtual environment that the command is installed in, even if it is not active. Writes "" if there
 * is none. */
static void python_beside(char *path, size_t n)
{
    char self[4096], config[4200];
    const ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    self[len > 0 ? len : 0] = 0;
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = 0;
    snprintf(config, sizeof config, "%s/../pyvenv.cfg", self);
    snprintf(path, n, "%s/python3", self);
    if (!slash || access(config, R_OK))
        path[0] = 0;
}

int doctor_python(int argc, char **argv)
{
    char beside[4200];
    if (!is_for_python(argc, argv))
        return -1;
    char **words = calloc((size_t)argc + 4, sizeof *words);
    if (!words)
        return END_MACHINE;
    memcpy(words + 3, argv, (size_t)argc * sizeof *argv);
    words[1] = "-c";
    words[2] = (char *)(size_t)start;
    python_beside(beside, sizeof beside);
    const char *chosen = getenv("STOKER_PYTHON");
    const int is_set = chosen && chosen[0];
    const char *const pythons[] = {is_set ? chosen : beside, is_set ? "" : "python3", is_set ? "" : "python"};
    for (int i = 0; i < 3; i++) {
        words[0] = (char *)(size_t)pythons[i];
        if (pythons[i][0])
            execvp(words[0], words);
    }
    free(words);
    if (is_set)
        out_say("doctor", "cannot run STOKER_PYTHON=%s: %s", chosen, strerror(errno));
    else
        out_say("doctor", "a training script needs Python, but there is no python3 on PATH; set STOKER_PYTHON to one "
                          "that has the package stoker");
    return END_MACHINE;
}
