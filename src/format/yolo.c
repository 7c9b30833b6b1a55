/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yolo.c -- reads YOLO's label files.
 */
#include "format/yolo.h"

#include <math.h>
#include <string.h>

#include "base/number.h"

#define SHARE_MOST 1e6 /* of the image; floats can hold it */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static bool fail(struct yolo *y, const char *problem)
{
    y->problem = problem;
    return false;
}

static bool at_end_of_line(struct yolo *y)
{
    while (y->p < y->end && is_blank(*y->p))
        y->p++;
    return y->p == y->end || *y->p == '\n';
}

static bool take_number(struct yolo *y, double *out)
{
    struct number v;
    const size_t n = number_read(y->p, (size_t)(y->end - y->p), &v);
    const char *after = y->p + n;
    if (n == 0 || (after < y->end && !is_blank(*after) && *after != '\n'))
        return fail(y, "it contains something other than numbers");
    if (!isfinite(v.d))
        return fail(y, "it has a value that is not a finite number");
    y->p = after;
    *out = v.d;
    return true;
}

static bool take_label(struct yolo *y, int64_t *out)
{
    double v;
    if (!take_number(y, &v))
        return false;
    if (v < 0 || v > 1e9 || floor(v) != v)
        return fail(y, "its class is not an index");
    *out = (int64_t)v;
    return true;
}

/* The extent of a polygon while its points are read. */
struct extent_of {
    double low[2], high[2];
};

static void add_point(struct extent_of *x, int64_t i, double v)
{
    const int d = (int)(i % 2);
    if (i < 2 || v < x->low[d])
        x->low[d] = v;
    if (i < 2 || v > x->high[d])
        x->high[d] = v;
}

/* The numbers of a line after its class. Returns how many; -1: a problem. */
static int64_t take_values(struct yolo *y, double box[4], struct extent_of *x, float *points)
{
    int64_t n = 0;
    const int64_t n_points = y->shape.points * y->shape.dims;
    for (; !at_end_of_line(y); n++) {
        double v;
        if (!take_number(y, &v))
            return -1;
        if (fabs(v) > SHARE_MOST) {
            fail(y, "it has a value far outside the image; coordinates are shares of the image, from 0 to 1");
            return -1;
        }
        add_point(x, n, v);
        if (n < 4)
            box[n] = v;
        else if (points && n < 4 + n_points)
            points[n - 4] = (float)v;
    }
    return n;
}

/* A box may leave the image, but its centre may not: such numbers are pixels. */
static bool check_box(struct yolo *y, const double box[4])
{
    if (box[2] < 0 || box[3] < 0)
        return fail(y, "its box has a negative width or height");
    for (int d = 0; d < 2; d++)
        if (box[d] < -0.01 || box[d] > 1.01)
            return fail(y, "its box is outside the image; coordinates are shares of the image, from 0 to 1");
    return true;
}

bool yolo_next(struct yolo *y, struct yolo_object *out, float *points)
{
    const int64_t keypoints = y->shape.points * y->shape.dims;
    if (y->problem)
        return false;
    for (;; y->p++) {
        y->line++;
        if (!at_end_of_line(y))
            break;
        if (y->p == y->end)
            return false;
    }
    double box[4] = {0};
    struct extent_of x = {0};
    if (!take_label(y, &out->label))
        return false;
    const int64_t n = take_values(y, box, &x, points);
    if (n < 0)
        return false;
    if (n < 4 || (keypoints > 0 && n != 4 + keypoints) || (keypoints == 0 && n > 4 && (n < 6 || n % 2 != 0)))
        return fail(y, keypoints > 0 ? "it has neither a box nor as many keypoints as kpt_shape says"
                                     : "it has neither a box nor a polygon");
    if (keypoints == 0 && n > 4)
        for (int d = 0; d < 2; d++) {
            box[d] = (x.low[d] + x.high[d]) / 2;
            box[d + 2] = x.high[d] - x.low[d];
        }
    for (int i = 0; i < 4; i++)
        out->box[i] = (float)box[i];
    if (y->p < y->end)
        y->p++;
    return check_box(y, box);
}
