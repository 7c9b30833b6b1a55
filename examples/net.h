/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net.h -- a small convolutional network with two depthwise-separable blocks, in plain C.
 *
 *     3x64x64 -> conv 3x3 /2 -> 16x32x32 -> depthwise 3x3    -> pointwise -> 32x32x32
 *                                        -> depthwise 3x3 /2 -> pointwise -> 64x16x16
 *                                        -> mean -> linear -> classes
 *
 * A depthwise-separable block is a 3x3 filter per channel and then a 1x1 mix of the channels: what a
 * 3x3 convolution does, for an eighth of its work.
 */
#ifndef NET_H
#define NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NET_SIDE = 64, NET_LAYERS = 7 };

/* CONV mixes all channels: 3x3 at the front, 1x1 as "pointwise", and on one pixel as "linear". DEPTHWISE
 * is a 3x3 filter per channel. MEAN averages the pixels. */
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

/* Returns 0, or -1 if there is no memory. Call net_done in both cases. */
int net_init(struct net *n, int n_classes, uint64_t seed);
void net_done(struct net *n);

/* Returns the softmax cross-entropy loss of one image (64 x 64 x 3, normalised). *right: the most likely class is the
 * true one. */
double net_forward(struct net *n, const float *image, int label, bool *right);
/* Adds the gradient for the last image of net_forward. */
void net_backward(struct net *n, const float *image, int label);
/* One step of gradient descent with momentum on the mean gradient of the batch. Clears the gradient. */
void net_step(struct net *n, int64_t batch, float rate);

#endif
