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
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "loader.h"

enum { STATE_VERSION = 1 };
static const int64_t EPOCH_MAX =
    (int64_t)1 << 53; /* the largest integer that a double represents exactly; larger epochs are a mistake */

struct state {
    uint64_t version, data, samples, seed, shuffle, epoch, position;
    uint64_t order;
    uint64_t length, weights, mix, sampled, window; /* 0: none */
};

static uint64_t window_of(const struct order *o)
{
    return o->near.n > 0 && o->alias.n == 0 && !o->sampled ? (uint64_t)o->near.window : 0;
}

static void state_of(struct stk_loader *l, struct state *s)
{
    int64_t position;
    const struct place at = ring_place(&l->ring, &position);
    *s = (struct state){
        .version = STATE_VERSION,
        .data = loader_fingerprint(l),
        .samples = (uint64_t)l->order.samples,
        .seed = l->order.seed,
        .shuffle = l->order.shuffle,
        .order = ORDER_VERSION,
        .epoch = (uint64_t)at.epoch,
        .position = (uint64_t)position,
        .length = l->order.passes ? (uint64_t)l->order.n : 0,
        .weights = l->order.alias.hash,
        .mix = l->order.mix.hash,
        .sampled = l->order.sampled,
        .window = window_of(&l->order),
    };
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
    char more[128] = "";
    int used = 0;
    if (s.length)
        used += snprintf(more, sizeof more, ",\"length\":%" PRIu64, s.length);
    if (s.weights)
        used += snprintf(more + used, sizeof more - (size_t)used, ",\"weights\":\"%016" PRIx64 "\"", s.weights);
    if (s.mix)
        used += snprintf(more + used, sizeof more - (size_t)used, ",\"mix\":\"%016" PRIx64 "\"", s.mix);
    if (s.window)
        used += snprintf(more + used, sizeof more - (size_t)used, ",\"window\":%" PRIu64, s.window);
    if (s.sampled)
        snprintf(more + used, sizeof more - (size_t)used, ",\"sampled\":1");
    const int len =
        snprintf(buf, n,
                 "{\"stoker\":%" PRIu64 ",\"data\":\"%016" PRIx64 "\",\"samples\":%" PRIu64 ",\"seed\":%" PRIu64
                 ",\"shuffle\":%" PRIu64 ",\"order\":%" PRIu64 ",\"epoch\":%" PRIu64 ",\"position\":%" PRIu64 "%s}",
                 s.version, s.data, s.samples, s.seed, s.shuffle, s.order, s.epoch, s.position, more);
    return len < 0 ? 0 : (size_t)len;
}

/* ------------------------------------------------------------------ reading it back */

static const char *skip_space(const char *p)
{
    while (isspace((unsigned char)*p))
        p++;
    return p;
}

/* The start of the value of "key"; NULL: missing. Values are numbers and strings without escapes. */
static const char *value_of(const char *text, const char *key)
{
    char quoted[32];
    snprintf(quoted, sizeof quoted, "\"%s\"", key);
    const char *p = strstr(text, quoted);
    if (!p)
        return NULL;
    p = skip_space(p + strlen(quoted));
    return *p == ':' ? skip_space(p + 1) : NULL;
}

static int number(const char *text, const char *key, int base, uint64_t *out, stk_error *e)
{
    const char *p = value_of(text, key);
    if (p && base == 16 && *p == '"')
        p++;
    const bool digit = p && (base == 16 ? isxdigit((unsigned char)*p) : isdigit((unsigned char)*p));
    char *end = NULL;
    errno = 0;
    *out = digit ? strtoull(p, &end, base) : 0;
    if (!digit || errno || *end == 0 || !strchr(base == 16 ? "\"" : ",} \t\r\n", *end))
        return error_set(e, STK_EUSAGE, "state", "this is not the state of a loader: \"%s\" is missing or not a number",
                         key);
    return STK_OK;
}

static int parse(const char *text, struct state *s, stk_error *e)
{
    const struct {
        const char *key;
        int base;
        uint64_t *to;
    } numbers[] = {
        {"stoker", 10, &s->version},    {"data", 16, &s->data},       {"samples", 10, &s->samples},
        {"seed", 10, &s->seed},         {"shuffle", 10, &s->shuffle}, {"epoch", 10, &s->epoch},
        {"position", 10, &s->position}, {"length", 10, &s->length},   {"weights", 16, &s->weights},
        {"mix", 16, &s->mix},           {"sampled", 10, &s->sampled}, {"window", 10, &s->window},
        {"order", 10, &s->order},
    };
    const size_t always = 7;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (i >= always && !value_of(text, numbers[i].key))
            continue;
        const int rc = number(text, numbers[i].key, numbers[i].base, numbers[i].to, e);
        if (rc != STK_OK)
            return rc;
    }
    return STK_OK;
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
                         ", but this Stoker only knows version %d; update Stoker",
                         s->order, ORDER_VERSION);
    if (s->order < ORDER_VERSION && order_shuffles_few(&l->order))
        return error_set(e, STK_ECHANGED, "state",
                         "the order changed: an older Stoker saved this state, and it shuffled up to %d samples or "
                         "shards in another "
                         "order; start the epoch again (set_epoch)",
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
        return error_set(
            e, STK_ECHANGED, "state",
            "the dataset changed: as many samples, but other names, sizes or labels (fingerprint %016" PRIx64
            " then, %016" PRIx64 " now); restore the dataset of the state, or start without the state",
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
            "the order changed: the weights of mixed sources differ from those of the state; use the same");
    if (s->weights != mine->weights || s->mix != mine->mix || s->sampled != mine->sampled)
        return error_set(e, STK_ECHANGED, "state", "the order changed: %s then, %s now; open the loader as it was then",
                         kind_of(s), kind_of(mine));
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
        return error_set(e, STK_EUSAGE, "order",
                         "the order has batches of its own, which drop_last and pad_last exclude; leave these out");
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
