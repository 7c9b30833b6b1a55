/* SPDX-License-Identifier: Apache-2.0 */
/*
 * minimal.c -- one epoch over a folder: `minimal photos/`.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stoker.h>

int main(int argc, char **argv)
{
    stk_options o = {.source = argc > 1 ? argv[1] : "photos",
                     .ops = "RandomResizedCrop(224) | RandomHorizontalFlip | Normalize",
                     .batch_size = 64,
                     .shuffle = 1};
    stk_error e;
    stk_loader *loader;
    if (stk_open(&loader, &o, &e) != STK_OK)
        return fprintf(stderr, "%s\n", e.text), 1;

    stk_batch *b;
    int rc;
    while ((rc = stk_next(loader, &b, &e)) == STK_OK) {
        const float *x = stk_field(b, "image")->data;
        const stk_array *y = stk_field(b, "label"); /* NULL if the source has no labels */
        const int64_t label = y ? ((const int64_t *)y->data)[0] : -1;
        printf("%" PRId64 " images; the first has label %" PRId64 " and begins with %f\n", stk_samples(b), label,
               (double)x[0]);
        stk_release(b);
    }
    stk_close(loader);
    return rc == STK_END ? 0 : (fprintf(stderr, "%s\n", e.text), 1);
}
