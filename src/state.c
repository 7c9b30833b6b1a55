/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.c -- where a loader is, as a few numbers in a line of JSON.
 *
 *     {"stoker":1,"data":"8f…","samples":1000,"seed":7,"shuffle":1,"order":2,"epoch":3,"position":640}
 *
 * position counts the samples delivered over all ranks. The other values identify the dataset and the order. A state of
 * another dataset, seed or order is refused, and the error says what differs. "order" is ORDER_VERSION; states without
 * it have version 1. Five more values are present only if they apply:
 *
 *     length     samples in an epoch, with steps_per_epoch
 *     weights    the hash of the weights
 *     mix        the hash of the shares of mixed sources; the position of each source follows from it
 *     window     samples in a window, if only windows are shuffled
 *     sampled    1 if the caller gives the order; the state does not contain that order, the caller gives it again
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "loader.h"

enum { STATE_VERSION = 1 };
static const int64_t EPOCH_MAX =
    (int64_t)1 << 53; /* the largest integer that a double represents exactly; larger epochs are a mistake */

struct state {
    uint64_t version, data, samples, seed, shuffle, epoch, position;
    uint64_t order;
    uint64_t length, weights, mix, sampled, window; /* 0: none */
};

static void state_of(struct stk_loader *l, struct state *s)
{
    int64_t position;
    const struct place at = ring_place(&l->ring, &position);
    const struct order *o = &l->order;
    const bool near = o->near.n > 0 && o->alias.n == 0 && !o->sampled;
    *s = (struct state){
        .version = STATE_VERSION,
        .data = loader_fingerprint(l),
        .samples = (uint64_t)o->samples,
        .seed = o->seed,
        .shuffle = o->shuffle,
        .order = ORDER_VERSION,
        .epoch = (uint64_t)at.epoch,
        .position = (uint64_t)position,
        .length = o->passes ? (uint64_t)o->n : 0,
        .weights = o->alias.hash,
        .mix = o->mix.hash,
        .sampled = o->sampled,
        .window = near ? (uint64_t)o->near.window : 0,
    };
}

/* In the order they are written. Optional members are written only if they are not 0. */
static const struct member {
    const char *key;
    size_t at;
    bool hex, optional;
} members[] = {
    {"stoker", offsetof(struct state, version), false, false},
    {"data", offsetof(struct state, data), true, false},
    {"samples", offsetof(struct state, samples), false, false},
    {"seed", offsetof(struct state, seed), false, false},
    {"shuffle", offsetof(struct state, shuffle), false, false},
    {"order", offsetof(struct state, order), false, true},
    {"epoch", offsetof(struct state, epoch), false, false},
    {"position", offsetof(struct state, position), false, false},
    {"length", offsetof(struct state, length), false, true},
    {"weights", offsetof(struct state, weights), true, true},
    {"mix", offsetof(struct state, mix), true, true},
    {"window", offsetof(struct state, window), false, true},
    {"sampled", offsetof(struct state, sampled), false, true},
};

static uint64_t *member_of(struct state *s, const struct member *m)
{
    return (uint64_t *)(void *)((char *)s + m->at);
}

static void write_state(struct json *j, struct state *s)
{
    json_open(j, NULL, '{');
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        const struct member *m = &members[i];
        const uint64_t v = *member_of(s, m);
        if (m->optional && v == 0)
            continue;
        if (m->hex)
            json_hex(j, m->key, v);
        else
            json_uint(j, m->key, v);
    }
    json_close(j, '}');
}

size_t stk_state_get(stk_loader *l, char *buf, size_t n)
{
    if (loader_check(l, NULL) != STK_OK) {
        if (n)
            buf[0] = 0;
        return 0;
    }
    struct state s;
    state_of(l, &s);
    struct text_out text = {.buf = buf, .n = n};
    struct json j = {.text = &text, .layout = JSON_COMPACT};
    write_state(&j, &s);
    return text.used;
}

static int number(struct json_value document, const struct member *m, uint64_t *out, stk_error *e)
{
    const struct json_value v = json_find(document, m->key);
    if ((m->optional && !v.p) || (m->hex ? json_get_hex(v, out) : json_get_uint(v, out)))
        return STK_OK;
    return error_set(e, STK_EUSAGE, "state", "this is not the state of a loader: \"%s\" is missing or not a number",
                     m->key);
}

static int parse(const char *text, struct state *s, stk_error *e)
{
    const struct json_value document = json_document(text, strlen(text));
    int rc = STK_OK;
    for (size_t i = 0; i < sizeof members / sizeof members[0] && rc == STK_OK; i++)
        rc = number(document, &members[i], member_of(s, &members[i]), e);
    return rc;
}

static const char *kind_of(const struct state *s)
{
    return s->sampled   ? "an order given by a sampler"
           : s->weights ? "a draw by weights"
           : s->mix     ? "a mixture of sources"
                        : "Stoker's own";
}

/* Version 2 changed how up to PERM_SMALL samples, shards or windows are shuffled, and nothing else. */
static int compare_version(const struct stk_loader *l, const struct state *s, stk_error *e)
{
    if (s->order > ORDER_VERSION)
        return error_set(e, STK_ECHANGED, "state",
                         "the state has an order of version %" PRIu64
                         ", but this Stoker supports only version %d; update Stoker",
                         s->order, ORDER_VERSION);
    if (s->order < ORDER_VERSION && order_shuffles_few(&l->order))
        return error_set(
            e, STK_ECHANGED, "state",
            "the order changed: an older version of Stoker saved this state; it shuffled up to %d samples or "
            "shards in another order; start the epoch again (set_epoch)",
            PERM_SMALL);
    return STK_OK;
}

static int compare(const struct state *s, const struct state *mine, stk_error *e)
{
    if (s->version != STATE_VERSION)
        return error_set(e, STK_ECHANGED, "state",
                         "the state has version %" PRIu64 ", but this Stoker reads version %d; update Stoker",
                         s->version, STATE_VERSION);
    if (s->samples != mine->samples)
        return error_set(e, STK_ECHANGED, "state",
                         "the dataset changed: %" PRIu64 " samples then, %" PRIu64
                         " now; restore the dataset of the state, or start without the state",
                         s->samples, mine->samples);
    if (s->data != mine->data)
        return error_set(e, STK_ECHANGED, "state",
                         "the dataset changed: the number of samples is the same, but names, sizes or labels differ "
                         "(fingerprint %016" PRIx64 " then, %016" PRIx64
                         " now); restore the dataset of the state, or start without the state",
                         s->data, mine->data);
    if (s->seed != mine->seed || s->shuffle != mine->shuffle)
        return error_set(e, STK_ECHANGED, "state",
                         "the order changed: seed %" PRIu64 ", shuffle %" PRIu64 " then; seed %" PRIu64
                         ", shuffle %" PRIu64 " now; use the same seed and shuffle",
                         s->seed, s->shuffle, mine->seed, mine->shuffle);
    if (s->window != mine->window)
        return error_set(e, STK_ECHANGED, "state",
                         "the order changed: shuffled in windows of %" PRIu64 " samples then, of %" PRIu64
                         " now (0: no windows); for tables larger than a quarter of memory, the window depends on "
                         "memory and on the fields that are read: use the same memory and fields",
                         s->window, mine->window);
    if (s->length != mine->length)
        return error_set(e, STK_ECHANGED, "state",
                         "the order changed: steps_per_epoch made epochs of %" PRIu64 " samples then, of %" PRIu64
                         " now (0: not set); use the same steps_per_epoch, batch_size and world_size",
                         s->length, mine->length);
    if (s->weights && mine->weights && s->weights != mine->weights)
        return error_set(e, STK_ECHANGED, "state",
                         "the order changed: the weights differ from those of the state; use the same weights");
    if (s->mix && mine->mix && s->mix != mine->mix)
        return error_set(
            e, STK_ECHANGED, "state",
            "the order changed: the weights of mixed sources differ from those of the state; use the same weights");
    if (s->weights != mine->weights || s->mix != mine->mix || s->sampled != mine->sampled)
        return error_set(e, STK_ECHANGED, "state",
                         "the order changed: %s then, %s now; open the loader with the options it had then", kind_of(s),
                         kind_of(mine));
    const uint64_t most = s->sampled ? INT64_MAX : s->length ? s->length : s->samples;
    if (s->position > most || s->epoch > EPOCH_MAX)
        return error_set(e, STK_EUSAGE, "state",
                         "the state is at position %" PRIu64 " of epoch %" PRIu64 ", but an epoch has %" PRIu64
                         " samples; the state is damaged",
                         s->position, s->epoch, most);
    return STK_OK;
}

int stk_state_set(stk_loader *l, const char *text, stk_error *e)
{
    struct state s = {.order = 1}, mine;
    int rc = loader_check(l, e);
    if (rc == STK_OK)
        rc = text ? parse(text, &s, e) : error_set(e, STK_EUSAGE, "state", "no state given");
    if (rc != STK_OK)
        return rc;
    state_of(l, &mine);
    rc = compare(&s, &mine, e);
    if (rc == STK_OK)
        rc = compare_version(l, &s, e);
    if (rc == STK_OK)
        loader_restart(l, (int64_t)s.epoch, (int64_t)s.position);
    return rc;
}

/* ------------------------------------------------------------------ orders that the caller gives */

static int check_starts(const stk_loader *l, int64_t n, const int64_t *starts, int64_t n_batches, stk_error *e)
{
    if (l->order.drop_last || l->order.pad_last)
        return error_set(
            e, STK_EUSAGE, "order",
            "the order defines its own batches, so drop_last and pad_last cannot be used; leave these out");
    for (int64_t i = 0; i < n_batches; i++) {
        const int64_t rows = (i + 1 < n_batches ? starts[i + 1] : n) - starts[i];
        if (rows < 1 || rows > l->options.batch_size || (i == 0 && starts[0] != 0))
            return error_set(e, STK_EUSAGE, "order", "batch %lld has %lld rows; it must have 1 to %lld (batch_size)",
                             (long long)i, (long long)rows, (long long)l->options.batch_size);
    }
    return n_batches > 0 || n == 0 ? STK_OK : error_set(e, STK_EUSAGE, "order", "the order has samples but no batches");
}

static int check_given(const stk_loader *l, int64_t epoch, const int64_t *samples, int64_t n, stk_error *e)
{
    if (!l->order.sampled)
        return error_set(e, STK_EUSAGE, "order", "this loader makes its own order; open it with sampled to give one");
    if (epoch < 0 || n < 0 || (n > 0 && !samples))
        return error_set(e, STK_EUSAGE, "order",
                         "the order has %lld samples and is for epoch %lld; neither may be negative", (long long)n,
                         (long long)epoch);
    for (int64_t i = 0; i < n; i++)
        if (samples[i] < 0 || samples[i] >= l->order.samples)
            return error_set(e, STK_EUSAGE, "order",
                             "the order has sample %lld at position %lld, but there are only %lld samples",
                             (long long)samples[i], (long long)i, (long long)l->order.samples);
    return STK_OK;
}

static int64_t *copy_of(const int64_t *from, int64_t n)
{
    int64_t *to = malloc(((size_t)n + 1) * sizeof *to);
    if (to && n > 0)
        memcpy(to, from, (size_t)n * sizeof *to);
    return to;
}

int stk_loader_set_order(stk_loader *l, int64_t epoch, const int64_t *samples, int64_t n, const int64_t *starts,
                         int64_t n_batches, stk_error *e)
{
    int rc = loader_check(l, e);
    if (rc == STK_OK)
        rc = check_given(l, epoch, samples, n, e);
    if (rc == STK_OK && starts)
        rc = check_starts(l, n, starts, n_batches, e);
    if (rc != STK_OK)
        return rc;
    const struct given g = {.epoch = epoch,
                            .n = n,
                            .samples = copy_of(samples, n),
                            .starts = starts ? copy_of(starts, n_batches) : NULL,
                            .n_batches = n_batches};
    if (!g.samples || (starts && !g.starts))
        rc = error_nomem(e, "order", (size_t)n * sizeof *samples);
    else
        rc = ring_give_order(&l->ring, &g, e);
    if (rc != STK_OK) {
        free(g.samples);
        free(g.starts);
    }
    return rc;
}

/* ------------------------------------------------------------------ epochs */

int64_t stk_loader_epoch(stk_loader *l)
{
    int64_t position;
    return loader_check(l, NULL) == STK_OK ? ring_place(&l->ring, &position).epoch : -1;
}

int stk_set_epoch(stk_loader *l, int64_t epoch, stk_error *e)
{
    const int rc = loader_check(l, e);
    if (rc != STK_OK)
        return rc;
    if (epoch < 0 || epoch > EPOCH_MAX)
        return error_set(e, STK_EUSAGE, "epoch", "epoch is %lld; it must be 0 to 2^53", (long long)epoch);
    if (epoch != stk_loader_epoch(l))
        loader_restart(l, epoch, 0);
    return STK_OK;
}
