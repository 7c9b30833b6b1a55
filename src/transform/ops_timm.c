/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_timm.c -- timm's policies, by the strings that its training scripts take:
 *
 *     TimmAugment("rand-m9-mstd0.5-inc1")      m magnitude, n ops, p, mstd, mmax, inc, t set of augmentations
 *     TimmAugment("original-mstd0.5")          v0, v0r, original, originalr, 3a
 *     TimmAugment("augmix-m5-w4-d2")           m magnitude, w width, d depth, a alpha, mstd
 */
#include <string.h>

#include "base/number.h"
#include "transform/ops_augmix.h"
#include "transform/timm_augment.h"

/* ------------------------------------------------------------------ the string */

enum { KIND, MAGNITUDE, LAYERS, P, MSTD, MMAX, INCREASING, SET, WIDTH, DEPTH, ALPHA, NUMBERS };
enum { RAND, V0, V0R, ORIGINAL, ORIGINALR, THREE, AUGMIX, KINDS };
static const char *const kinds[] = {"rand", "v0", "v0r", "original", "originalr", "3a", "augmix"};
enum { SET_USUAL, SET_3A, SET_3AW, SET_WEIGHTS };
static const char *const sets[] = {"", "3a", "3aw", "weights"};

static int word_in(const char *const *words, int n, const char *word, size_t len)
{
    for (int i = 0; i < n; i++)
        if (strlen(words[i]) == len && memcmp(words[i], word, len) == 0)
            return i;
    return -1;
}

/* One section: a key of letters, and a number. Returns false if it is unknown. */
static bool read_section(double v[NUMBERS], const char *s, size_t len)
{
    static const struct {
        const char *name;
        int place;
        unsigned kinds;
    } keys[] = {
        {"m", MAGNITUDE, 1u << RAND | 1u << AUGMIX},
        {"n", LAYERS, 1u << RAND},
        {"p", P, 1u << RAND},
        {"mstd", MSTD, ~0u},
        {"mmax", MMAX, 1u << RAND},
        {"inc", INCREASING, 1u << RAND},
        {"w", WIDTH, 1u << AUGMIX},
        {"d", DEPTH, 1u << AUGMIX},
        {"a", ALPHA, 1u << AUGMIX},
    };
    enum { KEYS = sizeof keys / sizeof keys[0] };
    size_t n = 0;
    struct number number;
    if (len > 0 && s[0] == 't' && v[KIND] == RAND) {
        const int set = word_in(sets, 4, s + 1, len - 1);
        v[SET] = set < 0 ? SET_USUAL : set;
        return true;
    }
    while (n < len && (s[n] < '0' || s[n] > '9'))
        n++;
    int k = 0;
    while (k < KEYS && (strlen(keys[k].name) != n || memcmp(keys[k].name, s, n) != 0))
        k++;
    if (k == KEYS || n == len || !(keys[k].kinds >> (int)v[KIND] & 1) ||
        number_read(s + n, len - n, &number) != len - n)
        return false;
    v[keys[k].place] = number.d;
    return number.d >= 0 && number.d <= 1e6;
}

static int set_policy(struct reader *r, struct op *o, int i, const struct value *v)
{
    static const char expected[] = "timm's string, such as \"rand-m9-mstd0.5-inc1\", \"original\" or \"3a\"";
    double *to = o->arg[i].v;
    const int rc = arg_store(r, o, i, v);
    if (rc)
        return rc;
    const char *s = o->word;
    size_t len = strcspn(s, "-");
    const int kind = word_in(kinds, KINDS, s, len);
    if (kind < 0)
        return arg_bad(r, v, expected);
    const double start[NUMBERS] = {[KIND] = kind, [MAGNITUDE] = 10, [LAYERS] = 2, [P] = 0.5, [MMAX] = 10, [ALPHA] = 1};
    memcpy(to, start, sizeof start);
    if (kind == AUGMIX) {
        to[MAGNITUDE] = to[WIDTH] = 3;
        to[MSTD] = 101; /* uniform */
    }
    for (s += len; *s; s += len) {
        len = strcspn(++s, "-");
        if (!read_section(to, s, len))
            return arg_bad(r, v, expected);
    }
    if (to[LAYERS] > 16 || to[P] > 1)
        return arg_bad(r, v, "at most 16 ops (n), and a probability (p) up to 1");
    if (kind == AUGMIX && (to[WIDTH] < 1 || to[WIDTH] > AUGMIX_WIDTH || to[DEPTH] > AUGMIX_DEPTH || to[ALPHA] <= 0))
        return arg_bad(r, v, "a width (w) from 1 to 8, a depth (d) up to 8, and an alpha (a) above 0");
    return STK_OK;
}

static const struct arg_type arg_policy = {"timm's string, in quotes", .text = true, .set = set_policy};
static const char *const filters[] = {"nearest", "bilinear", "bicubic", "random"};
static const struct arg_type arg_sampling = {"nearest, bilinear, bicubic or random", .words = filters, .n_words = 4};
static const struct arg_type arg_translate = {"a share of the size from 0 to 1", .high = 1, .counts = ARG_COUNT(1)};

enum { POLICY, SAMPLING, FILL, TRANSLATE }; /* arguments */

/* ------------------------------------------------------------------ rand */

struct weighted {
    enum timm_augment a;
    double weight;
};

static const struct weighted usual[] = {{TIMM_AUTOCONTRAST, 1}, {TIMM_EQUALIZE, 1},        {TIMM_INVERT, 1},
                                        {TIMM_ROTATE, 1},       {TIMM_POSTERIZE, 1},       {TIMM_SOLARIZE, 1},
                                        {TIMM_SOLARIZE_ADD, 1}, {TIMM_COLOR, 1},           {TIMM_CONTRAST, 1},
                                        {TIMM_BRIGHTNESS, 1},   {TIMM_SHARPNESS, 1},       {TIMM_SHEAR_X, 1},
                                        {TIMM_SHEAR_Y, 1},      {TIMM_TRANSLATE_X_REL, 1}, {TIMM_TRANSLATE_Y_REL, 1}};
static const struct weighted increasing[] = {{TIMM_AUTOCONTRAST, 1},
                                             {TIMM_EQUALIZE, 1},
                                             {TIMM_INVERT, 1},
                                             {TIMM_ROTATE, 1},
                                             {TIMM_POSTERIZE_INCREASING, 1},
                                             {TIMM_SOLARIZE_INCREASING, 1},
                                             {TIMM_SOLARIZE_ADD, 1},
                                             {TIMM_COLOR_INCREASING, 1},
                                             {TIMM_CONTRAST_INCREASING, 1},
                                             {TIMM_BRIGHTNESS_INCREASING, 1},
                                             {TIMM_SHARPNESS_INCREASING, 1},
                                             {TIMM_SHEAR_X, 1},
                                             {TIMM_SHEAR_Y, 1},
                                             {TIMM_TRANSLATE_X_REL, 1},
                                             {TIMM_TRANSLATE_Y_REL, 1}};
static const struct weighted three[] = {{TIMM_SOLARIZE_INCREASING, 1}, {TIMM_DESATURATE, 1}, {TIMM_GAUSSIAN_BLUR, 1}};
static const struct weighted three_weighted[] = {{TIMM_SOLARIZE_INCREASING, 6},
                                                 {TIMM_DESATURATE, 6},
                                                 {TIMM_GAUSSIAN_BLUR, 6},
                                                 {TIMM_ROTATE, 3},
                                                 {TIMM_SHEAR_X, 2},
                                                 {TIMM_SHEAR_Y, 2},
                                                 {TIMM_POSTERIZE_INCREASING, 1},
                                                 {TIMM_AUTOCONTRAST, 1},
                                                 {TIMM_COLOR_INCREASING, 1},
                                                 {TIMM_SHARPNESS_INCREASING, 1},
                                                 {TIMM_CONTRAST_INCREASING, 1},
                                                 {TIMM_BRIGHTNESS_INCREASING, 1},
                                                 {TIMM_EQUALIZE, 1},
                                                 {TIMM_INVERT, 1}};
static const struct weighted weights[] = {{TIMM_ROTATE, 3},
                                          {TIMM_SHEAR_X, 2},
                                          {TIMM_SHEAR_Y, 2},
                                          {TIMM_TRANSLATE_X_REL, 1},
                                          {TIMM_TRANSLATE_Y_REL, 1},
                                          {TIMM_COLOR_INCREASING, 0.25},
                                          {TIMM_SHARPNESS_INCREASING, 0.25},
                                          {TIMM_AUTOCONTRAST, 0.25},
                                          {TIMM_SOLARIZE_INCREASING, 0.05},
                                          {TIMM_SOLARIZE_ADD, 0.05},
                                          {TIMM_CONTRAST_INCREASING, 0.05},
                                          {TIMM_BRIGHTNESS_INCREASING, 0.05},
                                          {TIMM_EQUALIZE, 0.05},
                                          {TIMM_POSTERIZE_INCREASING, 0.05},
                                          {TIMM_INVERT, 0.05}};

#define COUNT(x) ((int)(sizeof(x) / sizeof(x)[0]))

/* Chooses by weight among those that are not used yet, and marks the choice. */
static int choose(struct rng *r, const struct weighted *w, int n, uint32_t *used)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += *used >> i & 1 ? 0 : w[i].weight;
    double left = sum * rng_double(r);
    int last = 0;
    for (int i = 0; i < n; i++) {
        if (*used >> i & 1)
            continue;
        last = i;
        left -= w[i].weight;
        if (left < 0)
            break;
    }
    *used |= 1u << last;
    return last;
}

/* Weighted sets are drawn without replacement, as in timm. */
static void draw_rand(struct drawing *g, const struct timm_how *how, const double *v, struct rng *r)
{
    const bool weighted = v[SET] == SET_3AW || v[SET] == SET_WEIGHTS;
    const struct weighted *set = v[SET] == SET_3A        ? three
                                 : v[SET] == SET_3AW     ? three_weighted
                                 : v[SET] == SET_WEIGHTS ? weights
                                 : v[INCREASING] != 0    ? increasing
                                                         : usual;
    const int n = set == three ? COUNT(three) : set == three_weighted ? COUNT(three_weighted) : COUNT(usual);
    uint32_t used = 0;
    enum timm_augment a[16];
    for (int i = 0; i < (int)v[LAYERS]; i++) {
        a[i] = set[choose(r, set, n, &used)].a;
        used = weighted ? used : 0;
    }
    for (int i = 0; i < (int)v[LAYERS]; i++)
        timm_augment(g, how, r, a[i], v[P], v[MAGNITUDE]);
}

/* ------------------------------------------------------------------ policies */

struct choice {
    enum timm_augment a;
    double p, level;
};

enum { POLICIES = 25 };

/* v0r and originalr differ from these only in how Posterize counts. */
static const struct choice policies[2][POLICIES][2] = {
    {
        {{TIMM_EQUALIZE, 0.8, 1}, {TIMM_SHEAR_Y, 0.8, 4}},
        {{TIMM_COLOR, 0.4, 9}, {TIMM_EQUALIZE, 0.6, 3}},
        {{TIMM_COLOR, 0.4, 1}, {TIMM_ROTATE, 0.6, 8}},
        {{TIMM_SOLARIZE, 0.8, 3}, {TIMM_EQUALIZE, 0.4, 7}},
        {{TIMM_SOLARIZE, 0.4, 2}, {TIMM_SOLARIZE, 0.6, 2}},
        {{TIMM_COLOR, 0.2, 0}, {TIMM_EQUALIZE, 0.8, 8}},
        {{TIMM_EQUALIZE, 0.4, 8}, {TIMM_SOLARIZE_ADD, 0.8, 3}},
        {{TIMM_SHEAR_X, 0.2, 9}, {TIMM_ROTATE, 0.6, 8}},
        {{TIMM_COLOR, 0.6, 1}, {TIMM_EQUALIZE, 1.0, 2}},
        {{TIMM_INVERT, 0.4, 9}, {TIMM_ROTATE, 0.6, 0}},
        {{TIMM_EQUALIZE, 1.0, 9}, {TIMM_SHEAR_Y, 0.6, 3}},
        {{TIMM_COLOR, 0.4, 7}, {TIMM_EQUALIZE, 0.6, 0}},
        {{TIMM_POSTERIZE, 0.4, 6}, {TIMM_AUTOCONTRAST, 0.4, 7}},
        {{TIMM_SOLARIZE, 0.6, 8}, {TIMM_COLOR, 0.6, 9}},
        {{TIMM_SOLARIZE, 0.2, 4}, {TIMM_ROTATE, 0.8, 9}},
        {{TIMM_ROTATE, 1.0, 7}, {TIMM_TRANSLATE_Y_REL, 0.8, 9}},
        {{TIMM_SHEAR_X, 0.0, 0}, {TIMM_SOLARIZE, 0.8, 4}},
        {{TIMM_SHEAR_Y, 0.8, 0}, {TIMM_COLOR, 0.6, 4}},
        {{TIMM_COLOR, 1.0, 0}, {TIMM_ROTATE, 0.6, 2}},
        {{TIMM_EQUALIZE, 0.8, 4}, {TIMM_EQUALIZE, 0.0, 8}},
        {{TIMM_EQUALIZE, 1.0, 4}, {TIMM_AUTOCONTRAST, 0.6, 2}},
        {{TIMM_SHEAR_Y, 0.4, 7}, {TIMM_SOLARIZE_ADD, 0.6, 7}},
        {{TIMM_POSTERIZE, 0.8, 2}, {TIMM_SOLARIZE, 0.6, 10}},
        {{TIMM_SOLARIZE, 0.6, 8}, {TIMM_EQUALIZE, 0.6, 1}},
        {{TIMM_COLOR, 0.8, 6}, {TIMM_ROTATE, 0.4, 5}},
    },
    {
        {{TIMM_POSTERIZE_ORIGINAL, 0.4, 8}, {TIMM_ROTATE, 0.6, 9}},
        {{TIMM_SOLARIZE, 0.6, 5}, {TIMM_AUTOCONTRAST, 0.6, 5}},
        {{TIMM_EQUALIZE, 0.8, 8}, {TIMM_EQUALIZE, 0.6, 3}},
        {{TIMM_POSTERIZE_ORIGINAL, 0.6, 7}, {TIMM_POSTERIZE_ORIGINAL, 0.6, 6}},
        {{TIMM_EQUALIZE, 0.4, 7}, {TIMM_SOLARIZE, 0.2, 4}},
        {{TIMM_EQUALIZE, 0.4, 4}, {TIMM_ROTATE, 0.8, 8}},
        {{TIMM_SOLARIZE, 0.6, 3}, {TIMM_EQUALIZE, 0.6, 7}},
        {{TIMM_POSTERIZE_ORIGINAL, 0.8, 5}, {TIMM_EQUALIZE, 1.0, 2}},
        {{TIMM_ROTATE, 0.2, 3}, {TIMM_SOLARIZE, 0.6, 8}},
        {{TIMM_EQUALIZE, 0.6, 8}, {TIMM_POSTERIZE_ORIGINAL, 0.4, 6}},
        {{TIMM_ROTATE, 0.8, 8}, {TIMM_COLOR, 0.4, 0}},
        {{TIMM_ROTATE, 0.4, 9}, {TIMM_EQUALIZE, 0.6, 2}},
        {{TIMM_EQUALIZE, 0.0, 7}, {TIMM_EQUALIZE, 0.8, 8}},
        {{TIMM_INVERT, 0.6, 4}, {TIMM_EQUALIZE, 1.0, 8}},
        {{TIMM_COLOR, 0.6, 4}, {TIMM_CONTRAST, 1.0, 8}},
        {{TIMM_ROTATE, 0.8, 8}, {TIMM_COLOR, 1.0, 2}},
        {{TIMM_COLOR, 0.8, 8}, {TIMM_SOLARIZE, 0.8, 7}},
        {{TIMM_SHARPNESS, 0.4, 7}, {TIMM_INVERT, 0.6, 8}},
        {{TIMM_SHEAR_X, 0.6, 5}, {TIMM_EQUALIZE, 1.0, 9}},
        {{TIMM_COLOR, 0.4, 0}, {TIMM_EQUALIZE, 0.6, 3}},
        {{TIMM_EQUALIZE, 0.4, 7}, {TIMM_SOLARIZE, 0.2, 4}},
        {{TIMM_SOLARIZE, 0.6, 5}, {TIMM_AUTOCONTRAST, 0.6, 5}},
        {{TIMM_INVERT, 0.6, 4}, {TIMM_EQUALIZE, 1.0, 8}},
        {{TIMM_COLOR, 0.6, 4}, {TIMM_CONTRAST, 1.0, 8}},
        {{TIMM_EQUALIZE, 0.8, 8}, {TIMM_EQUALIZE, 0.6, 3}},
    },
};

static enum timm_augment variant(enum timm_augment a, int kind)
{
    const bool other = kind == V0R || kind == ORIGINALR;
    return other && (a == TIMM_POSTERIZE || a == TIMM_POSTERIZE_ORIGINAL) ? TIMM_POSTERIZE_INCREASING : a;
}

static void draw_policy(struct drawing *g, const struct timm_how *how, int kind, struct rng *r)
{
    static const struct choice of_three[] = {
        {TIMM_SOLARIZE, 1, 5}, {TIMM_DESATURATE, 1, 10}, {TIMM_GAUSSIAN_BLUR_RAND, 1, 10}};
    if (kind == THREE) {
        const struct choice *c = &of_three[rng_below(r, 3)];
        timm_augment(g, how, r, c->a, c->p, c->level);
        return;
    }
    const struct choice *c = policies[kind == ORIGINAL || kind == ORIGINALR][rng_below(r, POLICIES)];
    for (int i = 0; i < 2; i++)
        timm_augment(g, how, r, variant(c[i].a, kind), c[i].p, c[i].level);
}

/* ------------------------------------------------------------------ augmix */

static void draw_augmix(struct drawing *g, const struct timm_how *how, const double *v, struct rng *r)
{
    static const enum timm_augment all[] = {TIMM_AUTOCONTRAST,
                                            TIMM_COLOR_INCREASING,
                                            TIMM_CONTRAST_INCREASING,
                                            TIMM_BRIGHTNESS_INCREASING,
                                            TIMM_SHARPNESS_INCREASING,
                                            TIMM_EQUALIZE,
                                            TIMM_ROTATE,
                                            TIMM_POSTERIZE_INCREASING,
                                            TIMM_SOLARIZE_INCREASING,
                                            TIMM_SHEAR_X,
                                            TIMM_SHEAR_Y,
                                            TIMM_TRANSLATE_X_REL,
                                            TIMM_TRANSLATE_Y_REL};
    const int width = (int)v[WIDTH];
    double shares[AUGMIX_WIDTH], m[2];
    ops_augmix_weights(r, v[ALPHA], shares, width);
    ops_augmix_weights(r, v[ALPHA], m, 2);
    for (int i = 0; i < width; i++)
        shares[i] = (double)(float)shares[i];
    drawing_note_number(g, "m", (double)(float)m[0]);
    drawing_note_numbers(g, "weights", shares, width);
    drawing_note_open(g, "chains");
    ops_augmix_fork(g, 0);
    for (int i = 0; i < width; i++) {
        drawing_note_open(g, NULL);
        for (int k = ops_augmix_depth(r, (int)v[DEPTH]); k > 0; k--)
            timm_augment(g, how, r, all[rng_below(r, COUNT(all))], 1, v[MAGNITUDE]);
        drawing_note_close(g);
        struct step *s = ops_augmix_add(g, shares[i], i == width - 1);
        s->mix.blended = true;
        s->mix.share = (float)m[0];
    }
    drawing_note_close(g);
}

static int draw_timm(struct drawing *g, const struct op *o)
{
    const double *v = o->arg[POLICY].v;
    struct timm_how how = {
        .mstd = v[MSTD], .mmax = v[MMAX], .translate = o->arg[TRANSLATE].v[0], .sampling = (int)o->arg[SAMPLING].v[0]};
    struct rng r = drawing_rng(g, o);
    drawing_fill(o, how.fill);
    if (v[KIND] == AUGMIX) {
        draw_augmix(g, &how, v, &r);
        return STK_OK;
    }
    drawing_note_open(g, "ops");
    if (v[KIND] == RAND)
        draw_rand(g, &how, v, &r);
    else
        draw_policy(g, &how, (int)v[KIND], &r);
    drawing_note_close(g);
    return STK_OK;
}

static int check_timm(struct flow *f, const struct op *o)
{
    return flow_check_fill(f, o);
}

const struct spec ops_timm[] = {
    {"TimmAugment",
     OP_RANDOM,
     {{"policy", &arg_policy, NULL},
      {"interpolation", &arg_sampling, "random"},
      {"fill", &arg_fill, "128"},
      {"translate_pct", &arg_translate, "0.45"}},
     check_timm,
     draw_timm},
    {0},
};
