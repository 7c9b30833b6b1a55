/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_augmix.h -- adds mixtures of chains to a job, for torchvision's AugMix and timm's.
 */
#ifndef OPS_AUGMIX_H
#define OPS_AUGMIX_H

#include "transform/drawing.h"

enum { AUGMIX_WIDTH = 8, AUGMIX_DEPTH = 8 }; /* at most */

/* Positive numbers that add up to 1: Dirichlet with n equal parameters. */
void ops_augmix_weights(struct rng *r, double alpha, double *out, int n);
/* The length of a chain; 0 or less: from 1 to 3. */
int ops_augmix_depth(struct rng *r, int depth);
/* Starts a mixture, with this weight of the image itself. The steps of a chain follow. */
void ops_augmix_fork(struct drawing *g, double weight);
/* Ends a chain. */
struct step *ops_augmix_add(struct drawing *g, double weight, bool last);

#endif
