/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net.h -- a small convolutional network with two depthwise-separable blocks, in plain C.
 *
 *     3x64x64 -> conv 3x3 /2 -> 16x32x32 -> depthwise 3x3    -> pointwise -> 32x32x32
 *                                        -> depthwise 3x3 /2 -> pointwise -> 64x16x16
 *                                        -> mean -> linear -> classes
 *
 * A depthwise-separable block applies a 3x3 filter to each channel, and then mixes the channels with a 1x1
 * convolution. It replaces a 3x3 convolution at an eighth of the work.
 */
#ifndef NET_H
#define NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NET_SIDE = 64, NET_LAYERS = 7 };

/* CONV mixes all channels: the first layer with 3x3, the "pointwise" layers with 1x1, the "linear" layer on one pixel.
 * DEPTHWISE applies a 3x3 filter to each channel. MEAN averages the pixels. */
enum kind { CONV, DEPTHWISE, MEAN };

struct layer {
    enum kind kind;
    int side, channels; /* of the output */
    int in_side, in_channels;
    int kernel, stride;
    bool relu;
    size_t n_weights, n_params; /* biases, one per channel, follow the weights */
    float *w, *grad, *speed;    /* parameters, their gradient, their momentum */
    float *out, *d_out;         /* activations of one image, and their gradient */
};

struct net {
    struct layer layers[NET_LAYERS];
    float *probability; /* of every class, for the last image */
};

/* Returns 0, or -1 if memory ran out. Call net_done in both cases. */
int net_init(struct net *n, int n_classes, uint64_t seed);
void net_done(struct net *n);

/* Returns the softmax cross-entropy loss of one image (64 x 64 x 3, normalised). Sets *right to whether
 * the most likely class is the true one. */
double net_forward(struct net *n, const float *image, int label, bool *right);
/* Adds the gradient for the last image that was passed to net_forward. */
void net_backward(struct net *n, const float *image, int label);
/* One step of gradient descent with momentum on the mean gradient of the batch. Clears the gradient. */
void net_step(struct net *n, int64_t batch, float rate);

#endif
