/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net.c -- forward, backward and step of a small convolutional network.
 *
 * Pixels are stored with their channels together (NHWC). So every inner loop runs over channels, which are adjacent in
 * memory, and the compiler can vectorise it. Each image goes forward and backward before the next one, so that its data
 * stays in the CPU's caches.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "net.h"

/* A linear congruential generator, for the initial weights. */
static float uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)(*state >> 40) / 8388608.0f - 1.0f;
}

/* Sets the sizes of a layer from those of the previous layer (NULL: the image). */
static void layer_shape(struct layer *l, const struct layer *before)
{
    l->in_side = before ? before->side : NET_SIDE;
    l->in_channels = before ? before->channels : 3;
    l->side = l->kind == MEAN ? 1 : (l->in_side + l->stride - 1) / l->stride;
    if (l->kind != CONV)
        l->channels = l->in_channels;
    if (l->kind == MEAN)
        return;
    const int inputs = l->kind == CONV ? l->in_channels : 1;
    l->n_weights = (size_t)(l->kernel * l->kernel * inputs) * (size_t)l->channels;
    l->n_params = l->n_weights + (size_t)l->channels;
}

static int layer_init(struct layer *l, uint64_t *random)
{
    const size_t n = l->n_params + 1, n_out = (size_t)(l->side * l->side) * (size_t)l->channels;
    l->w = calloc(n, sizeof *l->w);
    l->grad = calloc(n, sizeof *l->grad);
    l->speed = calloc(n, sizeof *l->speed);
    l->out = calloc(n_out, sizeof *l->out);
    l->d_out = calloc(n_out, sizeof *l->d_out);
    if (!l->w || !l->grad || !l->speed || !l->out || !l->d_out)
        return -1;
    /* He initialisation: the output has the same variance as the input. */
    const double fan_in = (double)l->n_weights / l->channels;
    const float scale = l->n_weights ? (float)sqrt(6.0 / fan_in) : 0;
    for (size_t i = 0; i < l->n_weights; i++)
        l->w[i] = scale * uniform(random);
    return 0;
}

int net_init(struct net *n, int n_classes, uint64_t seed)
{
    *n = (struct net){.layers = {
                          {.kind = CONV, .channels = 16, .kernel = 3, .stride = 2, .relu = true},
                          {.kind = DEPTHWISE, .kernel = 3, .stride = 1},
                          {.kind = CONV, .channels = 32, .kernel = 1, .stride = 1, .relu = true},
                          {.kind = DEPTHWISE, .kernel = 3, .stride = 2},
                          {.kind = CONV, .channels = 64, .kernel = 1, .stride = 1, .relu = true},
                          {.kind = MEAN},
                          {.kind = CONV, .channels = n_classes, .kernel = 1, .stride = 1},
                      }};
    for (int i = 0; i < NET_LAYERS; i++) {
        layer_shape(&n->layers[i], i ? &n->layers[i - 1] : NULL);
        if (layer_init(&n->layers[i], &seed) != 0)
            return -1;
    }
    n->probability = calloc((size_t)n_classes, sizeof *n->probability);
    return n->probability ? 0 : -1;
}

void net_done(struct net *n)
{
    for (int i = 0; i < NET_LAYERS; i++) {
        struct layer *l = &n->layers[i];
        free(l->w);
        free(l->grad);
        free(l->speed);
        free(l->out);
        free(l->d_out);
    }
    free(n->probability);
    *n = (struct net){0};
}

/* ------------------------------------------------------------------ the three inner loops */

static void add_scaled(float *restrict to, const float *restrict from, float factor, int n)
{
    for (int i = 0; i < n; i++)
        to[i] += factor * from[i];
}

static void add_product(float *restrict to, const float *restrict a, const float *restrict b, int n)
{
    for (int i = 0; i < n; i++)
        to[i] += a[i] * b[i];
}

/* Uses eight independent sums, because the compiler may not reorder the additions of a single sum. */
static float dot(const float *restrict a, const float *restrict b, int n)
{
    float sums[8] = {0};
    int i = 0;
    for (; i + 8 <= n; i += 8)
        for (int j = 0; j < 8; j++)
            sums[j] += a[i + j] * b[i + j];
    float sum = 0;
    for (; i < n; i++)
        sum += a[i] * b[i];
    for (int j = 0; j < 8; j++)
        sum += sums[j];
    return sum;
}

/* ------------------------------------------------------------------ forward and backward */

/* Calls step(l, output pixel, input pixel, tap) for every tap inside the input. Pixels outside the input are zero and
 * contribute nothing. */
typedef void step_fn(const struct layer *l, const float *in, float *d_in, int out_at, int in_at, int tap);

static void for_each_tap(const struct layer *l, const float *in, float *d_in, step_fn *step)
{
    const int margin = l->kernel / 2;
    for (int y = 0; y < l->side; y++)
        for (int x = 0; x < l->side; x++)
            for (int tap = 0; tap < l->kernel * l->kernel; tap++) {
                const int v = y * l->stride + tap / l->kernel - margin;
                const int u = x * l->stride + tap % l->kernel - margin;
                if (v >= 0 && v < l->in_side && u >= 0 && u < l->in_side)
                    step(l, in, d_in, y * l->side + x, v * l->in_side + u, tap);
            }
}

static void conv_step(const struct layer *l, const float *in, float *d_in, int out_at, int in_at, int tap)
{
    (void)d_in;
    const int ci = l->in_channels, co = l->channels;
    for (int c = 0; c < ci; c++)
        add_scaled(l->out + out_at * co, l->w + (tap * ci + c) * co, in[in_at * ci + c], co);
}

static void conv_step_back(const struct layer *l, const float *in, float *d_in, int out_at, int in_at, int tap)
{
    const int ci = l->in_channels, co = l->channels;
    const float *d = l->d_out + out_at * co;
    for (int c = 0; c < ci; c++) {
        const int at = (tap * ci + c) * co;
        add_scaled(l->grad + at, d, in[in_at * ci + c], co);
        if (d_in)
            d_in[in_at * ci + c] += dot(l->w + at, d, co);
    }
}

static void depthwise_step(const struct layer *l, const float *in, float *d_in, int out_at, int in_at, int tap)
{
    (void)d_in;
    const int n = l->channels;
    add_product(l->out + out_at * n, l->w + tap * n, in + in_at * n, n);
}

static void depthwise_step_back(const struct layer *l, const float *in, float *d_in, int out_at, int in_at, int tap)
{
    const int n = l->channels;
    const float *d = l->d_out + out_at * n;
    add_product(l->grad + tap * n, d, in + in_at * n, n);
    add_product(d_in + in_at * n, d, l->w + tap * n, n);
}

static void layer_forward(struct layer *l, const float *in)
{
    const int n = l->channels, pixels = l->side * l->side;
    if (l->kind == MEAN) {
        const int in_pixels = l->in_side * l->in_side;
        memset(l->out, 0, sizeof *l->out * (size_t)n);
        for (int p = 0; p < in_pixels; p++)
            add_scaled(l->out, in + p * n, 1.0f / (float)in_pixels, n);
        return;
    }
    for (int p = 0; p < pixels; p++)
        memcpy(l->out + p * n, l->w + l->n_weights, sizeof *l->out * (size_t)n);
    for_each_tap(l, in, NULL, l->kind == CONV ? conv_step : depthwise_step);
    for (int i = 0; l->relu && i < pixels * n; i++)
        l->out[i] = l->out[i] > 0 ? l->out[i] : 0;
}

/* Takes the gradient of the output. Adds the gradient of the weights to l->grad, and writes the gradient of the input
 * to d_in (NULL: not needed). */
static void layer_backward(struct layer *l, const float *in, float *d_in)
{
    const int n = l->channels, pixels = l->side * l->side, in_pixels = l->in_side * l->in_side;
    if (d_in)
        memset(d_in, 0, sizeof *d_in * (size_t)(in_pixels * l->in_channels));
    if (l->kind == MEAN) {
        for (int p = 0; p < in_pixels; p++)
            add_scaled(d_in + p * n, l->d_out, 1.0f / (float)in_pixels, n);
        return;
    }
    for (int i = 0; l->relu && i < pixels * n; i++)
        l->d_out[i] = l->out[i] > 0 ? l->d_out[i] : 0;
    for (int p = 0; p < pixels; p++)
        add_scaled(l->grad + l->n_weights, l->d_out + p * n, 1, n);
    for_each_tap(l, in, d_in, l->kind == CONV ? conv_step_back : depthwise_step_back);
}

double net_forward(struct net *n, const float *image, int label, bool *right)
{
    const float *in = image;
    for (int i = 0; i < NET_LAYERS; i++) {
        layer_forward(&n->layers[i], in);
        in = n->layers[i].out;
    }
    const int classes = n->layers[NET_LAYERS - 1].channels;
    int best = 0;
    for (int c = 1; c < classes; c++)
        if (in[c] > in[best])
            best = c;
    double sum = 0;
    for (int c = 0; c < classes; c++)
        sum += exp((double)in[c] - (double)in[best]);
    for (int c = 0; c < classes; c++)
        n->probability[c] = (float)(exp((double)in[c] - (double)in[best]) / sum);
    *right = best == label;
    return log(sum) + (double)in[best] - (double)in[label];
}

void net_backward(struct net *n, const float *image, int label)
{
    struct layer *last = &n->layers[NET_LAYERS - 1];
    for (int c = 0; c < last->channels; c++)
        last->d_out[c] = n->probability[c] - (c == label ? 1.0f : 0.0f);
    for (int i = NET_LAYERS - 1; i >= 0; i--) {
        struct layer *before = i ? &n->layers[i - 1] : NULL;
        layer_backward(&n->layers[i], before ? before->out : image, before ? before->d_out : NULL);
    }
}

void net_step(struct net *n, int64_t batch, float rate)
{
    for (int i = 0; i < NET_LAYERS; i++) {
        struct layer *l = &n->layers[i];
        for (size_t j = 0; j < l->n_params; j++) {
            l->speed[j] = 0.9f * l->speed[j] + l->grad[j] / (float)batch;
            l->w[j] -= rate * l->speed[j];
            l->grad[j] = 0;
        }
    }
}
