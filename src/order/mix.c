/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mix.c -- mixes sources by weight, in blocks.
 *
 * In every block each source has exactly its share of the places. So the number m of its samples before a place is a
 * formula: share * blocks + those in this block so far. The next one is sample m % count of pass m / count. Every pass
 * has its own shuffle, and no sample of a source is repeated before all of them have come. Within a block the places
 * are shuffled; if the order is not shuffled, they are spread evenly.
 */
#include "order/mix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/rng.h"
#include "order/perm.h"

enum { BLOCK_USUAL = 1024 };

/* ------------------------------------------------------------------ shares */

static int check_weights(const double *weights, int n, const int64_t *first, double *sum, stk_error *e)
{
    *sum = 0;
    for (int s = 0; s < n; s++) {
        if (!isfinite(weights[s]) || weights[s] < 0)
            return error_set(e, STK_EUSAGE, "open",
                             "mix: the weight of source %d is %g; weights must be finite and not negative", s,
                             weights[s]);
        if (weights[s] > 0 && first[s + 1] <= first[s])
            return error_set(e, STK_EUSAGE, "open",
                             "mix: source %d has a weight of %g but no samples; set its weight to 0, or leave it out",
                             s, weights[s]);
        *sum += weights[s];
    }
    if (!(*sum > 0) || !isfinite(*sum))
        return error_set(e, STK_EUSAGE, "open", "mix: the weights sum to %g; at least one must be greater than 0",
                         *sum);
    for (int s = 0; s < n; s++)
        if (weights[s] > 0 && weights[s] / *sum * MIX_BLOCK < 0.5)
            return error_set(e, STK_EUSAGE, "open",
                             "mix: source %d has a share of %g; a share must be 0 or at least 1/%d", s,
                             weights[s] / *sum, 2 * MIX_BLOCK);
    return STK_OK;
}

static bool is_exact(const double *weights, int n, double sum, int block)
{
    for (int s = 0; s < n; s++) {
        const double wanted = weights[s] / sum * block;
        if (fabs(wanted - round(wanted)) > 1e-9 || (weights[s] > 0 && wanted < 0.5))
            return false;
    }
    return true;
}

/* The smallest block in which all shares are whole numbers, repeated up to the usual size. 0: there is none. */
static int find_block(const double *weights, int n, double sum)
{
    for (int block = 1; block <= MIX_BLOCK; block++)
        if (is_exact(weights, n, sum, block))
            return block < BLOCK_USUAL ? BLOCK_USUAL / block * block : block;
    return 0;
}

/* Largest remainders: the source that is furthest below its share gets the next place. */
static void share_out(struct mix *m, const double *weights, double sum)
{
    int left = m->block;
    for (int s = 0; s < m->n; s++) {
        const double wanted = weights[s] / sum * m->block;
        m->sources[s].share = (int)(wanted + 1e-5);
        if (m->sources[s].share == 0 && weights[s] > 0)
            m->sources[s].share = 1;
        left -= m->sources[s].share;
    }
    while (left != 0) {
        int best = -1;
        double most = 0;
        for (int s = 0; s < m->n; s++) {
            const double over = (weights[s] / sum * m->block - m->sources[s].share) * (left > 0 ? 1 : -1);
            if ((best < 0 || over > most) && weights[s] > 0 && (left > 0 || m->sources[s].share > 1)) {
                best = s;
                most = over;
            }
        }
        m->sources[best].share += left > 0 ? 1 : -1;
        left += left > 0 ? -1 : 1;
    }
}

/* Every place gets the source that is furthest behind its share. */
static void spread(struct mix *m)
{
    int had[MIX_SOURCES] = {0};
    for (int i = 0; i < m->block; i++) {
        int best = 0;
        int64_t most = INT64_MIN;
        for (int s = 0; s < m->n; s++) {
            const int64_t behind = (int64_t)m->sources[s].share * (i + 1) - (int64_t)m->block * had[s];
            if (had[s] < m->sources[s].share && behind > most) {
                best = s;
                most = behind;
            }
        }
        had[best]++;
        m->spread[i] = (uint8_t)best;
    }
}

int mix_init(struct mix *m, const double *weights, int n, const int64_t *first, stk_error *e)
{
    *m = (struct mix){0};
    if (n < 1 || n > MIX_SOURCES)
        return error_set(e, STK_EUSAGE, "open", "mix: %d sources; 1 to %d can be mixed", n, MIX_SOURCES);
    double sum;
    const int rc = check_weights(weights, n, first, &sum, e);
    if (rc != STK_OK)
        return rc;
    m->n = n;
    m->block = find_block(weights, n, sum);
    if (m->block == 0)
        m->block = MIX_BLOCK;
    m->sources = calloc((size_t)n, sizeof *m->sources);
    m->spread = malloc((size_t)m->block);
    if (!m->sources || !m->spread) {
        mix_done(m);
        return error_nomem(e, "open", (size_t)n * sizeof *m->sources + MIX_BLOCK);
    }
    for (int s = 0; s < n; s++) {
        m->sources[s].first = first[s];
        m->sources[s].count = first[s + 1] - first[s];
    }
    share_out(m, weights, sum);
    spread(m);
    m->hash = hash_bytes("mix", 3, (uint64_t)m->block);
    for (int s = 0; s < n; s++)
        m->hash = hash_mix(hash_mix(m->hash, (uint64_t)m->sources[s].share), (uint64_t)m->sources[s].count);
    return STK_OK;
}

void mix_done(struct mix *m)
{
    free(m->sources);
    free(m->spread);
    *m = (struct mix){0};
}

/* ------------------------------------------------------------------ places */

static void lay_block(const struct mix *m, struct mix_walk *w, uint64_t seed, bool shuffle, uint64_t block)
{
    memcpy(w->source, m->spread, (size_t)m->block);
    if (shuffle) {
        const struct draw d = {.seed = seed, .sample = block};
        struct rng r;
        rng_init(&r, &d, "mix", 0);
        for (int i = m->block - 1; i > 0; i--) {
            const uint64_t j = rng_below(&r, (uint64_t)i + 1);
            const uint8_t source = w->source[i];
            w->source[i] = w->source[j];
            w->source[j] = source;
        }
    }
    uint16_t had[MIX_SOURCES] = {0};
    for (int i = 0; i < m->block; i++)
        w->nth[i] = had[w->source[i]]++;
    w->next = block + 1;
}

/* The place of q in its block. Lays that block out in w. */
static int place_of(const struct mix *m, struct mix_walk *w, uint64_t seed, bool shuffle, uint64_t q)
{
    const uint64_t block = q / (uint64_t)m->block;
    if (w->next != block + 1)
        lay_block(m, w, seed, shuffle, block);
    return (int)(q % (uint64_t)m->block);
}

int64_t mix_at(const struct mix *m, struct mix_walk *w, uint64_t seed, bool shuffle, uint64_t q)
{
    const int at = place_of(m, w, seed, shuffle, q), s = w->source[at];
    const struct mix_source *p = &m->sources[s];
    const uint64_t n = (uint64_t)p->count, nth = (w->next - 1) * (uint64_t)p->share + w->nth[at];
    if (!shuffle)
        return p->first + (int64_t)(nth % n);
    struct perm perm;
    perm_init(&perm, n, hash_mix(seed, (uint64_t)s), nth / n);
    return p->first + (int64_t)perm_at(&perm, nth % n);
}

uint64_t mix_before(const struct mix *m, struct mix_walk *w, uint64_t seed, bool shuffle, uint64_t q, int s)
{
    const int at = place_of(m, w, seed, shuffle, q);
    uint64_t n = (w->next - 1) * (uint64_t)m->sources[s].share;
    for (int i = 0; i < at; i++)
        n += w->source[i] == s;
    return n;
}
