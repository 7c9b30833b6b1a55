/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gil.c -- takes the GIL in threads of the engine, so that no fork happens in the middle of it.
 *
 * A thread that Python does not know gets a thread state first, without the GIL but under a lock of the interpreter's.
 * CPython 3.11 takes this lock in a forked child before it resets it: a child that was forked meanwhile waits forever.
 * The window is as long as the fork itself, during which the kernel stops other threads that write to memory.
 * So a lock of ours keeps both apart. No thread waits for the GIL while it holds this lock, since the thread that forks
 * has the GIL.
 *
 * From 3.12 on, a child resets the interpreter's lock before it takes it (gh-112275). Later versions,
 * 3.14 at the latest, also hold it during the fork. There our lock would be taken after it by the thread that forks,
 * and before it by a thread of the engine: both would wait forever. So only 3.11 gets our lock. The extension is built
 * for the stable ABI, so the version is known at run time only.
 */
#include "extension.h"

#include <pthread.h>
#include <stdbool.h>

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static bool guarded;                    /* whether forks and new thread states exclude each other */
static PyInterpreterState *interpreter; /* of the first import; PyGILState_Ensure would take the main one */

static void before_fork(void)
{
    pthread_mutex_lock(&making);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&making);
}

int gil_init(void)
{
    if (interpreter)
        return 0;
    interpreter = PyInterpreterState_Get();
    guarded = Py_Version < 0x030C0000;
    if (!guarded)
        return 0;
    return pthread_atfork(before_fork, after_fork, after_fork) ? (PyErr_NoMemory(), -1) : 0;
}

struct gil gil_take(void)
{
    if (PyGILState_GetThisThreadState())
        return (struct gil){.known = PyGILState_Ensure()};
    if (guarded)
        pthread_mutex_lock(&making);
    PyThreadState *made = PyThreadState_New(interpreter);
    if (guarded)
        pthread_mutex_unlock(&making);
    if (!made)
        Py_FatalError("out of memory for the state of a thread");
    PyEval_RestoreThread(made);
    return (struct gil){.made = made};
}

void gil_give(struct gil g)
{
    if (!g.made) {
        PyGILState_Release(g.known);
        return;
    }
    PyThreadState_Clear(g.made);
    PyThreadState_DeleteCurrent();
}
