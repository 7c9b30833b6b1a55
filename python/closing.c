/* SPDX-License-Identifier: Apache-2.0 */
/*
 * closing.c -- closes loaders that are garbage collected while their threads may run Python functions.
 *
 * The garbage collector runs in any thread, even in a thread of the loader itself, in the middle of the user's
 * function. That thread cannot wait for itself. It cannot wait for the threads of another loader either, because those
 * may wait for a lock that is held around the user's function. So a new thread closes such a loader. It holds no lock,
 * and takes the GIL only to release the functions. closing_wait waits for all of these threads before the interpreter
 * ends.
 */
#include "loader.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct remains {
    stk_loader *l;
    struct options *options;
    PyObject *type; /* keeps the module and its state alive */
};

static void *bury(void *arg)
{
    struct remains *r = arg;
    stk_close(r->l);
    const struct gil gil = gil_take();
    struct state *s = PyType_GetModuleState((PyTypeObject *)r->type);
    options_done(r->options);
    free(r->options);
    s->n_closing--;
    Py_DECREF(r->type);
    gil_give(gil);
    free(r);
    return NULL;
}

/* Blocks all signals except those of a crash and SIGPROF, as the engine's threads do. */
static int start(struct remains *r)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGPROF};
    sigset_t most, before;
    pthread_t thread;
    sigfillset(&most);
    for (size_t i = 0; i < sizeof crashes / sizeof crashes[0]; i++)
        sigdelset(&most, crashes[i]);
    pthread_sigmask(SIG_BLOCK, &most, &before);
    const int rc = pthread_create(&thread, NULL, bury, r);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc == 0)
        pthread_detach(thread);
    return rc;
}

static void count(struct state *s)
{
    if (s->closing_pid != getpid()) /* a forked child does not have the parent's threads */
        s->n_closing = 0;
    s->closing_pid = getpid();
    s->n_closing++;
}

bool loader_close_later(struct loader *o)
{
    struct remains *r = calloc(1, sizeof *r);
    if (!r)
        return false;
    struct state *s = PyType_GetModuleState(Py_TYPE((PyObject *)o));
    *r = (struct remains){.l = o->l, .options = o->options, .type = Py_NewRef((PyObject *)Py_TYPE((PyObject *)o))};
    count(s);
    stk_stop(o->l);
    if (start(r) != 0) {
        s->n_closing--;
        Py_DECREF(r->type);
        free(r);
        return false;
    }
    o->l = NULL;
    o->options = NULL;
    return true;
}

PyObject *closing_wait(PyObject *module, PyObject *none)
{
    (void)none;
    const struct state *s = PyModule_GetState(module);
    const struct timespec pause = {.tv_nsec = 200 * 1000};
    while (s->n_closing > 0 && s->closing_pid == getpid()) {
        PyThreadState *thread = PyEval_SaveThread();
        nanosleep(&pause, NULL);
        PyEval_RestoreThread(thread);
    }
    Py_RETURN_NONE;
}
