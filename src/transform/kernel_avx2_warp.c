/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_avx2_warp.c -- bilinear and bicubic sampling through a map, for three channels, with AVX2.
 *
 * The definition (warp.c) computes in double precision and drops the fraction. Here values are computed in single
 * precision, with an error of less than `unsure`. A value that is not within `unsure` of a whole number has the same
 * whole part either way. The few pixels with another value, and those at the edge of the image, are computed again by
 * the definition. Pixels in flat areas are whole numbers in both precisions, so they are only copied.
 */
#include <math.h>
#include <string.h>

#include "transform/kernel.h"
#include "transform/kernel_avx2_taps.h"

/* BLOCK: pixels at a time. The others: bits after the binary point, of which the last is `unsure`. Bilinear values have
 * errors of three steps in single precision and of dx and dy, less than 2^-14 in all. */
enum { BLOCK = 32, LINEAR_BITS = 13, CUBIC_BITS = 11 };

/* A run of output pixels on its way. */
struct block {
    int32_t at[BLOCK];            /* bilinear: offset in bytes of the first of four taps, all inside */
    int32_t ix[BLOCK], iy[BLOCK]; /* bicubic: the tap left of and above the point */
    float dx[BLOCK], dy[BLOCK];   /* from the tap to the point */
};

/* ------------------------------------------------------------------ where pixels come from */

/* Coordinates along a line of the output: pixel i comes from (x[0] + x[1] i) / (d[0] + d[1] i), and so on. */
struct track {
    double x[2], y[2], d[2];
    bool columns, rows; /* all come from the middle of columns, or of rows: dx or dy is just 0, or 1 at the edge */
};

/* Whether output i comes from i + c, in a map where the other direction has weight b. */
static bool whole(double a, double b, double c)
{
    return a == 1.0 && b == 0.0 && c == floor(c);
}

static struct track track_of(const struct warp *w, int32_t x, int32_t y)
{
    const double *a = w->a, px = x + 0.5, py = y + 0.5;
    return (struct track){{a[0] * px + a[1] * py + a[2], a[0]},
                          {a[3] * px + a[4] * py + a[5], a[3]},
                          {w->perspective ? a[6] * px + a[7] * py + 1.0 : 1.0, w->perspective ? a[6] : 0.0},
                          !w->perspective && whole(a[0], a[1], a[2]),
                          !w->perspective && whole(a[4], a[3], a[5])};
}

/* The same to the middle of pixels. */
static struct track moved(const struct track *t)
{
    struct track to = *t;
    for (int i = 0; i < 2; i++) {
        to.x[i] -= 0.5 * t->d[i];
        to.y[i] -= 0.5 * t->d[i];
    }
    return to;
}

struct span {
    double lo, end;
};

static inline double most(double a, double b)
{
    return a > b ? a : b;
}

static inline double least(double a, double b)
{
    return a < b ? a : b;
}

/* Leaves the i of a span with value + step * i >= bound. */
static inline void limit(struct span *s, double value, double step, double bound)
{
    if (step > 0.0)
        s->lo = most(s->lo, ceil((bound - value) / step));
    else if (step < 0.0)
        s->end = least(s->end, floor((value - bound) / -step) + 1.0);
    else if (value < bound)
        s->end = s->lo;
    s->end = most(s->end, s->lo);
}

/* The pixels, of n, that come from inside of the image by more than a margin. */
static struct span inside(const struct track *t, int32_t in_w, int32_t in_h, int32_t n, double margin)
{
    struct span s = {0.0, n};
    limit(&s, t->x[0], t->x[1], margin);
    limit(&s, t->y[0], t->y[1], margin);
    limit(&s, in_w * t->d[0] - t->x[0], in_w * t->d[1] - t->x[1], margin);
    limit(&s, in_h * t->d[0] - t->y[0], in_h * t->d[1] - t->y[1], margin);
    s.lo = least(s.lo, n);
    s.end = least(s.end, n);
    return s;
}

struct pair {
    __m256d tap, rest;
};

/* Splits coordinates into the tap before them and the distance. clamp: so that this and the next tap are inside. */
INLINE struct pair split(__m256d at, double size, bool clamp)
{
    if (clamp)
        at = _mm256_min_pd(_mm256_max_pd(at, _mm256_setzero_pd()), _mm256_set1_pd(size - 1.0));
    __m256d tap = _mm256_floor_pd(at);
    if (clamp)
        tap = _mm256_min_pd(tap, _mm256_set1_pd(size > 2.0 ? size - 2.0 : 0.0));
    return (struct pair){tap, _mm256_sub_pd(at, tap)};
}

/* Finds where n pixels from i on come from, and up to three more. t goes to the middle of pixels. */
INLINE void find(struct block *b, const struct warp_source *s, const struct track *t, int32_t i, int n, bool clamp,
                 bool bilinear, bool perspective)
{
    const double width = s->warp->in_w, height = s->warp->in_h, stride = (double)s->in.stride;
    const double origin = -(s->from.y * stride + 3.0 * s->from.x);
    __m256d at = _mm256_add_pd(_mm256_set1_pd(i), _mm256_set_pd(3.0, 2.0, 1.0, 0.0));
    for (int k = 0; k < n; k += 4, at = _mm256_add_pd(at, _mm256_set1_pd(4.0))) {
        __m256d x = _mm256_fmadd_pd(_mm256_set1_pd(t->x[1]), at, _mm256_set1_pd(t->x[0]));
        __m256d y = _mm256_fmadd_pd(_mm256_set1_pd(t->y[1]), at, _mm256_set1_pd(t->y[0]));
        if (perspective) {
            const __m256d d = _mm256_fmadd_pd(_mm256_set1_pd(t->d[1]), at, _mm256_set1_pd(t->d[0]));
            const __m256d inverse = _mm256_div_pd(_mm256_set1_pd(1.0), d);
            x = _mm256_mul_pd(x, inverse);
            y = _mm256_mul_pd(y, inverse);
        }
        const struct pair across = split(x, width, clamp), down = split(y, height, clamp);
        _mm_store_ps(b->dx + k, _mm256_cvtpd_ps(across.rest));
        _mm_store_ps(b->dy + k, _mm256_cvtpd_ps(down.rest));
        if (bilinear) {
            const __m256d from = _mm256_fmadd_pd(across.tap, _mm256_set1_pd(3.0), _mm256_set1_pd(origin));
            const __m256d offset = _mm256_fmadd_pd(down.tap, _mm256_set1_pd(stride), from);
            _mm_store_si128((__m128i *)(b->at + k), _mm256_cvttpd_epi32(offset));
        } else {
            _mm_store_si128((__m128i *)(b->ix + k), _mm256_cvttpd_epi32(across.tap));
            _mm_store_si128((__m128i *)(b->iy + k), _mm256_cvttpd_epi32(down.tap));
        }
    }
}

/* ------------------------------------------------------------------ eight pixels */

INLINE __m256i to_fixed(__m256 v, int bits)
{
    return _mm256_cvttps_epi32(_mm256_mul_ps(v, _mm256_set1_ps((float)(1 << bits))));
}

/* The distance of a value to the next lower whole number, such that 0 and 1 are near one. */
INLINE __m256i rest_of(__m256i v, int bits)
{
    const __m256i one = _mm256_set1_epi32(1), fraction = _mm256_set1_epi32((1 << bits) - 1);
    return _mm256_and_si256(_mm256_add_epi32(v, one), fraction);
}

INLINE uint32_t lanes(__m256i mask)
{
    return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(mask));
}

/* The pixels with a value so near to a whole number that the definition must decide. */
INLINE uint32_t near_whole(const struct eight *e, int bits)
{
    const __m256i first = _mm256_min_epu32(rest_of(e->v[0], bits), rest_of(e->v[1], bits));
    const __m256i least = _mm256_min_epu32(first, rest_of(e->v[2], bits));
    return lanes(_mm256_cmpgt_epi32(_mm256_set1_epi32(2), least));
}

/* ------------------------------------------------------------------ bilinear */

INLINE __m256 between(__m256 a, __m256 b, __m256 d)
{
    return _mm256_fmadd_ps(_mm256_sub_ps(b, a), d, a);
}

INLINE struct eight linear_eight(const struct block *b, const struct warp_source *s, int k)
{
    const uint8_t *below = s->in.px + (s->warp->in_h > 1 ? s->in.stride : 0);
    const struct pairs top = pairs_of(s->in.px, b->at + k), bottom = pairs_of(below, b->at + k);
    const __m256 dx = _mm256_load_ps(b->dx + k), dy = _mm256_load_ps(b->dy + k);
    struct eight e;
    for (int ch = 0; ch < 3; ch++) {
        const __m256 left = between(value_of(&top, ch), value_of(&bottom, ch), dy);
        const __m256 right = between(value_of(&top, ch + 3), value_of(&bottom, ch + 3), dy);
        e.v[ch] = to_fixed(between(left, right, dx), LINEAR_BITS);
    }
    return e;
}

/* What differs between two pixels next to each other. */
INLINE __m256i across_of(const struct pairs *p)
{
    const __m256i next = _mm256_or_si256(_mm256_srli_epi32(p->low, 24), _mm256_slli_epi32(p->high, 8));
    return _mm256_xor_si256(p->low, next);
}

/* Which channels have equal taps, of those that count (struct eight): 0 where they are. Points near the edge of their
 * cell do not count as equal: the definition may put them into the next cell. */
INLINE __m256i flat_of(const struct pairs *top, const struct pairs *bottom, __m256 dx, __m256 dy, const struct track *t)
{
    const __m256 half = _mm256_set1_ps(0.5f), sign = _mm256_set1_ps(-0.0f), none = _mm256_setzero_ps();
    const __m256 x = t->columns ? none : _mm256_andnot_ps(sign, _mm256_sub_ps(dx, half));
    const __m256 y = t->rows ? none : _mm256_andnot_ps(sign, _mm256_sub_ps(dy, half));
    const __m256 edge = _mm256_cmp_ps(_mm256_max_ps(x, y), _mm256_set1_ps(0.5f - 0x1p-16f), _CMP_GT_OQ);
    const __m256i across = across_of(top), down = _mm256_xor_si256(top->low, bottom->low);
    const __m256i right = _mm256_xor_si256(top->high, bottom->high);
    const __m256i beside = _mm256_or_si256(_mm256_srli_epi32(down, 24), _mm256_slli_epi32(right, 8));
    __m256i all = _mm256_or_si256(_mm256_or_si256(across, down), beside);
    if (t->rows) /* one of both lines counts */
        all = _mm256_blendv_epi8(across, across_of(bottom), _mm256_castps_si256(_mm256_cmp_ps(dy, half, _CMP_GT_OQ)));
    else if (t->columns)
        all = _mm256_blendv_epi8(down, beside, _mm256_castps_si256(_mm256_cmp_ps(dx, half, _CMP_GT_OQ)));
    return _mm256_or_si256(all, _mm256_castps_si256(edge));
}

/* Of the pixels near a whole number, those where it is not because the taps are equal. */
static uint32_t not_flat(const struct eight *e, const struct block *b, const struct warp_source *s,
                         const struct track *t, int k)
{
    const __m256i two_units = _mm256_set1_epi32(2), zero = _mm256_setzero_si256();
    const uint8_t *below = s->in.px + (s->warp->in_h > 1 ? s->in.stride : 0);
    const struct pairs top = pairs_of(s->in.px, b->at + k), bottom = pairs_of(below, b->at + k);
    __m256i near = zero;
    for (int ch = 0; ch < 3; ch++) {
        const __m256i mask = _mm256_set1_epi32(0xff << 8 * ch);
        near = _mm256_or_si256(near,
                               _mm256_and_si256(_mm256_cmpgt_epi32(two_units, rest_of(e->v[ch], LINEAR_BITS)), mask));
    }
    const __m256i flat = flat_of(&top, &bottom, _mm256_load_ps(b->dx + k), _mm256_load_ps(b->dy + k), t);
    const __m256i unsure = _mm256_andnot_si256(_mm256_cmpeq_epi8(flat, zero), near);
    return 0xff ^ lanes(_mm256_cmpeq_epi32(unsure, zero));
}

/* ------------------------------------------------------------------ bicubic */

INLINE const uint8_t *tap_of(const struct warp_source *s, int32_t x, int32_t y)
{
    return s->in.px + (size_t)(y - s->from.y) * s->in.stride + 3 * (size_t)(x - s->from.x);
}

INLINE __m256 floats(const uint8_t *p)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)));
}

/* The weights of four taps at distance d from the second. */
INLINE __m128 weights(float distance)
{
    const __m128 d = _mm_set1_ps(distance);
    __m128 w = _mm_setr_ps(-1.0f, 1.0f, -1.0f, 1.0f);
    w = _mm_fmadd_ps(w, d, _mm_setr_ps(2.0f, -2.0f, 1.0f, -1.0f));
    w = _mm_fmadd_ps(w, d, _mm_setr_ps(-1.0f, 0.0f, 1.0f, 0.0f));
    return _mm_fmadd_ps(w, d, _mm_setr_ps(0.0f, 1.0f, 0.0f, 0.0f));
}

/* The first of four taps that are all inside, and their weights; taps outside are the pixel at the edge. */
INLINE int32_t fold(int32_t tap, int32_t size, float distance, float w[4])
{
    const int32_t first = tap - 1;
    _mm_storeu_ps(w, weights(distance));
    if (first >= 0 && first <= size - 4)
        return first;
    const int32_t start = first < 0 ? 0 : size - 4;
    float folded[4] = {0};
    for (int k = 0; k < 4; k++) {
        const int32_t at = first + k - start;
        folded[at < 0 ? 0 : at > 3 ? 3 : at] += w[k];
    }
    memcpy(w, folded, sizeof folded);
    return start;
}

/* The sum over four pixels of four lines, three channels. */
INLINE __m128 cubic_one(const struct block *b, const struct warp_source *s, int i)
{
    const __m256i spread_low = _mm256_setr_epi32(0, 0, 0, 1, 1, 1, 2, 2);
    const __m256i spread_high = _mm256_setr_epi32(2, 3, 3, 3, 0, 0, 0, 0);
    const __m256i second = _mm256_setr_epi32(3, 4, 5, 6, 7, 7, 7, 7);
    float wx[4], wy[4];
    const int32_t x = fold(b->ix[i], s->warp->in_w, b->dx[i], wx), y = fold(b->iy[i], s->warp->in_h, b->dy[i], wy);
    const uint8_t *p = tap_of(s, x, y);
    __m256 low = _mm256_setzero_ps(), high = low;
    for (int k = 0; k < 4; k++, p += s->in.stride) {
        const __m256 w = _mm256_broadcast_ss(&wy[k]);
        low = _mm256_fmadd_ps(floats(p), w, low);
        high = _mm256_fmadd_ps(floats(p + 8), w, high);
    }
    const __m256 across = _mm256_castps128_ps256(_mm_loadu_ps(wx));
    low = _mm256_mul_ps(low, _mm256_permutevar8x32_ps(across, spread_low));
    high = _mm256_mul_ps(high, _mm256_permutevar8x32_ps(across, spread_high));
    const __m128 end = _mm256_castps256_ps128(high);
    const __m128 third = _mm_shuffle_ps(_mm256_extractf128_ps(low, 1), end, _MM_SHUFFLE(1, 0, 3, 2));
    const __m128 fourth = _mm_castsi128_ps(_mm_srli_si128(_mm_castps_si128(end), 4));
    const __m128 next = _mm256_castps256_ps128(_mm256_permutevar8x32_ps(low, second));
    return _mm_add_ps(_mm_add_ps(_mm256_castps256_ps128(low), next), _mm_add_ps(third, fourth));
}

INLINE struct eight cubic_eight(const struct block *b, const struct warp_source *s, int k)
{
    __m128 one[8];
    for (int i = 0; i < 8; i++)
        one[i] = cubic_one(b, s, k + i);
    _MM_TRANSPOSE4_PS(one[0], one[1], one[2], one[3]);
    _MM_TRANSPOSE4_PS(one[4], one[5], one[6], one[7]);
    struct eight e;
    for (int ch = 0; ch < 3; ch++)
        e.v[ch] = to_fixed(_mm256_set_m128(one[4 + ch], one[ch]), CUBIC_BITS);
    return e;
}

/* Values below 0 and above 255 end there. */
INLINE void saturate(struct eight *e)
{
    const __m256i most = _mm256_set1_epi32(255 << CUBIC_BITS);
    for (int ch = 0; ch < 3; ch++)
        e->v[ch] = _mm256_min_epi32(_mm256_max_epi32(e->v[ch], _mm256_setzero_si256()), most);
}

/* ------------------------------------------------------------------ lines */

/* Whether all 16 taps of a bicubic pixel are equal, and it is not near the edge of its cell; if so, writes it. */
static bool cubic_flat(const struct block *b, const struct warp_source *s, int k, uint8_t *dst)
{
    const int32_t x = b->ix[k] - 1, y = b->iy[k] - 1;
    if (fmaxf(fabsf(b->dx[k] - 0.5f), fabsf(b->dy[k] - 0.5f)) > 0.5f - 0x1p-16f)
        return false;
    if (x < 0 || y < 0 || x + 4 > s->warp->in_w || y + 4 > s->warp->in_h)
        return false;
    const uint8_t *first = tap_of(s, x, y), *p = first;
    for (int i = 0; i < 4; i++, p += s->in.stride)
        if (memcmp(p, first, 3) != 0 || memcmp(p, p + 3, 9) != 0)
            return false;
    memcpy(dst, first, 3);
    return true;
}

INLINE void run(const struct warp_source *s, const struct track *t, int32_t x, int32_t y, int32_t i, int n,
                uint8_t *dst, bool inner, bool bilinear)
{
    _Alignas(32) struct block b;
    uint32_t again = 0;
    if (!s->warp->perspective)
        find(&b, s, t, i, n, bilinear, bilinear, false);
    else if (inner)
        find(&b, s, t, i, n, false, bilinear, true);
    else
        find(&b, s, t, i, n, bilinear, bilinear, true);
    for (int k = n; k % 8 != 0; k++) { /* what comes after the run may be outside: repeat its last pixel */
        if (bilinear) {
            b.at[k] = b.at[n - 1];
            continue;
        }
        b.ix[k] = b.ix[n - 1];
        b.iy[k] = b.iy[n - 1];
    }
    for (int k = 0; k < n; k += 8) {
        struct eight e = bilinear ? linear_eight(&b, s, k) : cubic_eight(&b, s, k);
        uint32_t near = near_whole(&e, bilinear ? LINEAR_BITS : CUBIC_BITS);
        if (bilinear && near)
            near = not_flat(&e, &b, s, t, k);
        again |= near << k;
        if (!bilinear)
            saturate(&e);
        put(&e, bilinear ? LINEAR_BITS : CUBIC_BITS, dst + 3 * k);
    }
    for (again &= n < BLOCK ? (1u << n) - 1 : UINT32_MAX; again; again &= again - 1) {
        const int k = __builtin_ctz(again);
        if (bilinear || !cubic_flat(&b, s, k, dst + 3 * k))
            warp_pixel(s, x + i + k, y, dst + 3 * k);
    }
}

INLINE void sample(const struct warp_source *s, int32_t x, int32_t y, int32_t n, uint8_t *dst, bool bilinear)
{
    const double edge = 0x1p-16, steep = 0x1p-8, flat_enough = 0x1p8;
    const struct track t = track_of(s->warp, x, y);
    const double end = t.d[0] + t.d[1] * n;
    if (!(least(t.d[0], end) > steep && most(t.d[0], end) < flat_enough)) {
        warp_pixels_c(s, x, y, n, dst);
        return;
    }
    const double margin = edge * most(1.0, most(t.d[0], end));
    const int32_t in_w = s->warp->in_w, in_h = s->warp->in_h;
    const struct span sure = inside(&t, in_w, in_h, n, margin), maybe = inside(&t, in_w, in_h, n, -margin);
    const struct track taps = moved(&t);
    const struct span inner = inside(&taps, in_w - 1, in_h - 1, n, margin);
    const int32_t lo = (int32_t)sure.lo, hi = (int32_t)sure.end;
    const int32_t before = (int32_t)least(maybe.lo, sure.lo), after = (int32_t)most(maybe.end, sure.end);
    warp_fill(s, before, dst);
    warp_pixels_c(s, x + before, y, lo - before, dst + 3 * (size_t)before);
    for (int32_t i = lo; i < hi; i += BLOCK) {
        const int n_run = hi - i < BLOCK ? hi - i : BLOCK;
        uint8_t bytes[3 * BLOCK], *to = n_run == BLOCK ? dst + 3 * (size_t)i : bytes;
        run(s, &taps, x, y, i, n_run, to, bilinear && i >= inner.lo && i + n_run <= inner.end, bilinear);
        if (n_run < BLOCK)
            memcpy(dst + 3 * (size_t)i, bytes, 3 * (size_t)n_run);
    }
    warp_pixels_c(s, x + hi, y, after - hi, dst + 3 * (size_t)hi);
    warp_fill(s, n - after, dst + 3 * (size_t)after);
}

static void linear3_avx2(const struct warp_source *s, int32_t x, int32_t y, int32_t n, uint8_t *dst)
{
    if ((uint64_t)s->in.h * s->in.stride <= INT32_MAX) /* offsets have 32 bits */
        sample(s, x, y, n, dst, true);
    else
        warp_pixels_c(s, x, y, n, dst);
}

static void cubic3_avx2(const struct warp_source *s, int32_t x, int32_t y, int32_t n, uint8_t *dst)
{
    if (s->warp->in_w >= 4 && s->warp->in_h >= 4)
        sample(s, x, y, n, dst, false);
    else
        warp_pixels_c(s, x, y, n, dst);
}

void kernels_avx2_warp(struct kernels *k)
{
    k->warp_linear3 = linear3_avx2;
    k->warp_cubic3 = cubic3_avx2;
}
