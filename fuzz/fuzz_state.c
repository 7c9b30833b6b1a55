/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_state.c -- any text as a state. Either it is refused with a message, or the loader continues from there.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "stoker.h"

static stk_loader *open_loader(void)
{
    static uint8_t rows[64];
    static const int64_t shape[] = {64};
    static const stk_array x = {.name = "x", .data = rows, .dtype = STK_UINT8, .ndim = 1, .device = 1, .shape = shape};
    const stk_options o = {.arrays = &x, .n_arrays = 1, .batch_size = 7, .threads = 1, .shuffle = 1, .seed = 7};
    stk_loader *l = NULL;
    return stk_open(&l, &o, NULL) == STK_OK ? l : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static stk_loader *loader; /* opened once: threads cost more than a state */
    if (!loader)
        loader = open_loader();
    char *text = malloc(size + 1);
    if (!loader || !text)
        abort();
    memcpy(text, data, size);
    text[size] = 0;
    stk_error e;
    char state[300];
    stk_batch *b = NULL;
    if (stk_state_set(loader, text, &e) == STK_OK) {
        stk_next(loader, &b, &e);
        stk_release(b);
    } else if (e.text[0] == 0) {
        abort();
    }
    if (stk_state_get(loader, state, sizeof state) >= sizeof state)
        abort();
    free(text);
    return 0;
}
