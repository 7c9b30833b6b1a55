/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_op.c -- an op of your own, in C: `own_op photos/`.
 *
 * The op blanks a random square of every image, after the ops of the loader, in its threads. It draws the place from
 * row->random, so that epochs are the same for any number of threads and after a resume. It keeps no state.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stoker.h>
#include <string.h>

struct blank {
    int64_t side; /* pixels */
    float value;
};

/* A step of SplitMix64: turns the random number of a row into as many as the op needs. */
static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Several threads call this at the same time, each for a row of its own. */
static int run(void *user, const stk_row *row, stk_error *e)
{
    const struct blank *b = user;
    const stk_array *image = row->image; /* channels x height x width, float32, dense */
    const int64_t channels = image->shape[0], height = image->shape[1], width = image->shape[2];
    if (height < b->side || width < b->side) {
        *e = (stk_error){.code = STK_EDATA, .sample = row->sample};
        snprintf(e->reason, sizeof e->reason, "the image is smaller than the square of %" PRId64 " pixels", b->side);
        return STK_EDATA;
    }
    uint64_t state = row->random;
    const int64_t top = (int64_t)(next(&state) % (uint64_t)(height - b->side + 1));
    const int64_t left = (int64_t)(next(&state) % (uint64_t)(width - b->side + 1));
    for (int64_t c = 0; c < channels; c++)
        for (int64_t y = top; y < top + b->side; y++)
            for (int64_t x = left; x < left + b->side; x++)
                ((float *)row->to)[(c * height + y) * width + x] = b->value;
    return STK_OK;
}

int main(int argc, char **argv)
{
    struct blank blank = {.side = 32, .value = 0.0f};
    const stk_op_hook op = {.user = &blank, .run = run};
    stk_options o = {.source = argc > 1 ? argv[1] : "photos",
                     .ops = "RandomResizedCrop(64) | RandomHorizontalFlip | Normalize",
                     .op = &op,
                     .batch_size = 16,
                     .shuffle = 1};
    stk_error e;
    stk_loader *loader;
    if (stk_open(&loader, &o, &e) != STK_OK)
        return fprintf(stderr, "%s\n", e.text), 1;

    stk_batch *b;
    int rc;
    while ((rc = stk_next(loader, &b, &e)) == STK_OK) {
        const float *x = stk_field(b, "image")->data;
        int64_t blanked = 0;
        for (int64_t i = 0; i < stk_samples(b) * 64 * 64 * 3; i++)
            blanked += x[i] == blank.value;
        printf("%" PRId64 " images, %" PRId64 " blank values\n", stk_samples(b), blanked);
        stk_release(b);
    }
    stk_close(loader);
    return rc == STK_END ? 0 : (fprintf(stderr, "%s\n", e.text), 1);
}
