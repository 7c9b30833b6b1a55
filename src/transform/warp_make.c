/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warp_make.c -- maps from angles and corners, with the arithmetic of Pillow's Image.rotate and torchvision's affine
 * and perspective.
 */
#include <math.h>
#include <string.h>

#include "transform/warp.h"

static const double pi = 3.14159265358979323846;

static double radians(double degrees)
{
    return degrees * (pi / 180.0);
}

/* Python's round(x, 15) for |x| <= 1: the nearest multiple of 1e-15, by the exact value of x. */
static double round15(double x)
{
    const double unit = 1e15, product = x * unit, low = fma(x, unit, -product);
    double whole = nearbyint(product);
    const double rest = product - whole + low;
    if (rest > 0.5 || (rest == 0.5 && fmod(whole, 2.0) != 0.0))
        whole += 1.0;
    else if (rest < -0.5 || (rest == -0.5 && fmod(whole, 2.0) != 0.0))
        whole -= 1.0;
    return whole / unit;
}

static void start(struct warp *w, int32_t in_w, int32_t in_h)
{
    *w = (struct warp){.in_w = in_w, .in_h = in_h, .w = in_w, .h = in_h};
}

static void set_affine(struct warp *w, double a0, double a1, double a2, double a3, double a4, double a5)
{
    const double a[8] = {a0, a1, a2, a3, a4, a5, 0.0, 0.0};
    memcpy(w->a, a, sizeof a);
}

static double along(const double *a, double x, double y)
{
    return a[0] * x + a[1] * y + a[2];
}

/* Makes the output contain the whole turned input. */
static void widen(struct warp *w)
{
    double *a = w->a, low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    for (int i = 0; i < 4; i++) {
        const double x = i == 1 || i == 2 ? w->in_w : 0.0, y = i >= 2 ? w->in_h : 0.0;
        for (int k = 0; k < 2; k++) {
            const double at = along(a + 3 * k, x, y);
            low[k] = fmin(low[k], at);
            high[k] = fmax(high[k], at);
        }
    }
    w->expanded = true;
    w->w = (int32_t)(ceil(high[0]) - floor(low[0]));
    w->h = (int32_t)(ceil(high[1]) - floor(low[1]));
    const double x = -(w->w - w->in_w) / 2.0, y = -(w->h - w->in_h) / 2.0;
    const double a2 = along(a, x, y), a5 = along(a + 3, x, y);
    a[2] = a2;
    a[5] = a5;
}

/* Right angles move pixels and need no filter. */
static bool quarter(struct warp *w, double degrees, bool expand)
{
    if (degrees == 180.0) {
        set_affine(w, -1.0, 0.0, w->in_w, 0.0, -1.0, w->in_h);
        return true;
    }
    if ((degrees != 90.0 && degrees != 270.0) || !(expand || w->in_w == w->in_h))
        return false;
    w->w = w->in_h;
    w->h = w->in_w;
    if (degrees == 90.0)
        set_affine(w, 0.0, -1.0, w->in_w, 1.0, 0.0, 0.0);
    else
        set_affine(w, 0.0, 1.0, 0.0, -1.0, 0.0, w->in_h);
    return true;
}

bool warp_rotate(struct warp *w, int32_t in_w, int32_t in_h, enum filter filter, double degrees, bool expand,
                 const double *center)
{
    start(w, in_w, in_h);
    degrees = fmod(degrees, 360.0);
    degrees = degrees < 0.0 ? degrees + 360.0 : degrees;
    if (!center && degrees == 0.0)
        return false;
    if (!center && quarter(w, degrees, expand))
        return true;
    w->filter = filter;
    const double angle = -radians(degrees), x = center ? center[0] : in_w / 2.0, y = center ? center[1] : in_h / 2.0;
    const double c = round15(cos(angle)), s = round15(sin(angle)), minus = round15(-sin(angle));
    set_affine(w, c, s, 0.0, minus, c, 0.0);
    const double a2 = along(w->a, -x, -y) + x, a5 = along(w->a + 3, -x, -y) + y;
    w->a[2] = a2;
    w->a[5] = a5;
    if (expand)
        widen(w);
    return true;
}

void warp_affine(struct warp *w, int32_t in_w, int32_t in_h, enum filter filter, const struct warp_turn *t)
{
    start(w, in_w, in_h);
    w->filter = filter;
    const double rot = radians(t->degrees), sx = radians(t->shear[0]), sy = radians(t->shear[1]);
    const double cx = t->center ? t->center[0] : in_w * 0.5, cy = t->center ? t->center[1] : in_h * 0.5;
    const double a = cos(rot - sy) / cos(sy), b = -cos(rot - sy) * tan(sx) / cos(sy) - sin(rot);
    const double c = sin(rot - sy) / cos(sy), d = -sin(rot - sy) * tan(sx) / cos(sy) + cos(rot);
    const double x = -cx - t->translate[0], y = -cy - t->translate[1];
    set_affine(w, d / t->scale, -b / t->scale, 0.0, -c / t->scale, a / t->scale, 0.0);
    const double a2 = w->a[0] * x + w->a[1] * y, a5 = w->a[3] * x + w->a[4] * y;
    w->a[2] = a2 + cx;
    w->a[5] = a5 + cy;
}

void warp_matrix(struct warp *w, int32_t in_w, int32_t in_h, enum filter filter, const double m[6])
{
    start(w, in_w, in_h);
    w->filter = filter;
    set_affine(w, m[0], m[1], m[2], m[3], m[4], m[5]);
}

enum { UNKNOWNS = 8 };

/* Gauss, with pivots. Returns false if the equations have no single solution. */
static bool solve(long double m[UNKNOWNS][UNKNOWNS + 1])
{
    for (int i = 0; i < UNKNOWNS; i++) {
        int best = i;
        for (int r = i + 1; r < UNKNOWNS; r++)
            best = fabsl(m[r][i]) > fabsl(m[best][i]) ? r : best;
        if (fabsl(m[best][i]) < 1e-9L)
            return false;
        for (int c = 0; c <= UNKNOWNS; c++) {
            const long double swap = m[i][c];
            m[i][c] = m[best][c];
            m[best][c] = swap;
        }
        for (int r = 0; r < UNKNOWNS; r++) {
            const long double share = r == i ? 0.0L : m[r][i] / m[i][i];
            for (int c = i; c <= UNKNOWNS && r != i; c++)
                m[r][c] -= share * m[i][c];
        }
    }
    return true;
}

/* torchvision solves in double precision and rounds to single; so do we, with more digits in between. */
bool warp_perspective(struct warp *w, int32_t in_w, int32_t in_h, enum filter filter, const int32_t to[4][2])
{
    start(w, in_w, in_h);
    w->filter = filter;
    w->perspective = true;
    long double m[UNKNOWNS][UNKNOWNS + 1] = {{0}};
    for (int i = 0; i < 4; i++) {
        const long double x = to[i][0], y = to[i][1];
        const long double from[2] = {i == 1 || i == 2 ? in_w - 1 : 0, i >= 2 ? in_h - 1 : 0};
        for (int k = 0; k < 2; k++) {
            long double *row = m[2 * i + k];
            row[3 * k] = x;
            row[3 * k + 1] = y;
            row[3 * k + 2] = 1.0L;
            row[6] = -from[k] * x;
            row[7] = -from[k] * y;
            row[8] = from[k];
        }
    }
    if (!solve(m))
        return false;
    for (int i = 0; i < UNKNOWNS; i++)
        w->a[i] = (double)(float)(m[i][UNKNOWNS] / m[i][i]);
    return true;
}
