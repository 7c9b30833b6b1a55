/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.c -- where a loader is, as a handful of numbers in a line of JSON.
 *
 *     {"stoker":1,"data":"8f…","samples":1000,"seed":7,"shuffle":1,"epoch":3,"position":640}
 *
 * position counts what was delivered over all ranks. The rest says what it is a position in: a state
 * of another data set, seed or order is refused with words on what differs.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "loader.h"

enum { STATE_VERSION = 1 };

struct state {
    uint64_t version, data, samples, seed, shuffle, epoch, position;
};

static void state_of(struct stk_loader *l, struct state *s)
{
    pthread_mutex_lock(&l->lock);
    const struct place at = ring_place(&l->ring);
    *s = (struct state){
        .version = STATE_VERSION,
        .data = loader_fingerprint(l),
        .samples = (uint64_t)l->order.n,
        .seed = l->order.seed,
        .shuffle = l->order.shuffle,
        .epoch = (uint64_t)at.epoch,
        .position = (uint64_t)order_position(&l->order, at.epoch, at.batch),
    };
    pthread_mutex_unlock(&l->lock);
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
    const int len =
        snprintf(buf, n,
                 "{\"stoker\":%" PRIu64 ",\"data\":\"%016" PRIx64 "\",\"samples\":%" PRIu64 ",\"seed\":%" PRIu64
                 ",\"shuffle\":%" PRIu64 ",\"epoch\":%" PRIu64 ",\"position\":%" PRIu64 "}",
                 s.version, s.data, s.samples, s.seed, s.shuffle, s.epoch, s.position);
    return len < 0 ? 0 : (size_t)len;
}

/* ------------------------------------------------------------------ reading it back */

static const char *skip_space(const char *p)
{
    while (isspace((unsigned char)*p))
        p++;
    return p;
}

/* "key" -> where its value starts; NULL: not there. Values here are numbers and strings without escapes. */
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
    if (!p || !isxdigit((unsigned char)*p))
        return error_set(e, STK_EUSAGE, "state", "this is no state of a loader: no number for \"%s\" in it", key);
    *out = strtoull(p, NULL, base);
    return STK_OK;
}

static int parse(const char *text, struct state *s, stk_error *e)
{
    const struct {
        const char *key;
        int base;
        uint64_t *to;
    } numbers[] = {
        {"stoker", 10, &s->version},  {"data", 16, &s->data},   {"samples", 10, &s->samples},   {"seed", 10, &s->seed},
        {"shuffle", 10, &s->shuffle}, {"epoch", 10, &s->epoch}, {"position", 10, &s->position},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        const int rc = number(text, numbers[i].key, numbers[i].base, numbers[i].to, e);
        if (rc != STK_OK)
            return rc;
    }
    return STK_OK;
}

static int compare(const struct state *s, const struct state *mine, stk_error *e)
{
    if (s->version != STATE_VERSION)
        return error_set(e, STK_ECHANGED, "state", "the state is of version %" PRIu64 ", this library reads %d",
                         s->version, STATE_VERSION);
    if (s->samples != mine->samples)
        return error_set(e, STK_ECHANGED, "state", "the data set changed: %" PRIu64 " samples then, %" PRIu64 " now",
                         s->samples, mine->samples);
    if (s->data != mine->data)
        return error_set(
            e, STK_ECHANGED, "state",
            "the data set changed: as many samples, but other names, sizes or labels (fingerprint %016" PRIx64
            " then, %016" PRIx64 " now)",
            s->data, mine->data);
    if (s->seed != mine->seed || s->shuffle != mine->shuffle)
        return error_set(e, STK_ECHANGED, "state",
                         "the order changed: seed %" PRIu64 ", shuffle %" PRIu64 " then; seed %" PRIu64
                         ", shuffle %" PRIu64 " now",
                         s->seed, s->shuffle, mine->seed, mine->shuffle);
    if (s->position > s->samples || s->epoch > INT64_MAX)
        return error_set(e, STK_EUSAGE, "state", "the state stands at position %" PRIu64 " of %" PRIu64, s->position,
                         s->samples);
    return STK_OK;
}

int stk_state_set(stk_loader *l, const char *text, stk_error *e)
{
    struct state s = {0}, mine;
    int rc = loader_check(l, e);
    if (rc == STK_OK)
        rc = text ? parse(text, &s, e) : error_set(e, STK_EUSAGE, "state", "no state given");
    if (rc != STK_OK)
        return rc;
    state_of(l, &mine);
    rc = compare(&s, &mine, e);
    if (rc == STK_OK)
        loader_restart(l, (int64_t)s.epoch, (int64_t)s.position);
    return rc;
}

int64_t stk_epoch(stk_loader *l)
{
    return loader_check(l, NULL) == STK_OK ? ring_place(&l->ring).epoch : 0;
}

int stk_set_epoch(stk_loader *l, int64_t epoch, stk_error *e)
{
    const int rc = loader_check(l, e);
    if (rc != STK_OK)
        return rc;
    if (epoch < 0)
        return error_set(e, STK_EUSAGE, "epoch", "epoch is %lld; epochs count from 0", (long long)epoch);
    if (epoch != stk_epoch(l))
        loader_restart(l, epoch, 0);
    return STK_OK;
}
