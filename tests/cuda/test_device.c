/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_device.c -- batches in the memory of a GPU: with a fake driver, or with a real one.
 *
 * What arrives must equal, bit for bit, what a loader without a device delivers. The streams of the caller are slow,
 * and batches are released while these streams still read them.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda/cuda_driver.h"
#include "support/open_loader.h"

enum { SAMPLES = 60, HIGH = 13, WIDE = 10, BATCH = 8 };

static uint8_t pixels[SAMPLES][HIGH][WIDE][3];
static int64_t labels[SAMPLES];

/* ------------------------------------------------------------------ the driver */

static void *library;
static struct cuda_api cu;
static void *context;
static int (*live)(void);
static void (*break_all)(int code);
static void (*capture)(void *stream, int on);

static void *symbol(const char *name)
{
    return dlsym(library, name);
}

static bool open_driver(void)
{
    static const char *const names[] = {
#define NAME(name, text, arguments) text,
        CUDA_FUNCTIONS(NAME)};
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        return false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *found = symbol(names[i]);
        memcpy((char *)&cu + i * sizeof found, &found, sizeof found);
    }
    void *found = symbol("fake_cuda_live");
    memcpy(&live, &found, sizeof found);
    found = symbol("fake_cuda_break");
    memcpy(&break_all, &found, sizeof found);
    found = symbol("fake_cuda_capture");
    memcpy(&capture, &found, sizeof found);
    int n = 0;
    return cu.init(0) == 0 && cu.device_count(&n) == 0 && n > 0;
}

static bool ready;

#define NEEDS_GPU()                                                                                                    \
    if (!ready)                                                                                                        \
    SKIP("there is no GPU")
#define NEEDS_FAKE()                                                                                                   \
    if (!live)                                                                                                         \
    SKIP("only with the fake driver")

/* The context, which the caller shares with the loader. */
static void enter(void)
{
    CHECK_EQ(cu.context_retain(&context, 0), 0);
    CHECK_EQ(cu.context_push(context), 0);
}

static void leave(void)
{
    void *popped;
    cu.context_pop(&popped);
    cu.context_release(0);
}

/* ------------------------------------------------------------------ loaders */

static const int64_t shape[] = {SAMPLES, HIGH, WIDE, 3}, label_shape[] = {SAMPLES};
static const stk_array arrays[] = {
    {.name = "image", .data = pixels, .dtype = STK_UINT8, .ndim = 4, .shape = shape},
    {.name = "label", .data = labels, .dtype = STK_INT64, .ndim = 1, .shape = label_shape},
};

static stk_options some_options(void)
{
    return (stk_options){.arrays = arrays,
                         .n_arrays = 2,
                         .batch_size = BATCH,
                         .threads = 3,
                         .shuffle = 1,
                         .memory = 256 << 20,
                         .ops = "RandomCrop((11, 8)) | RandomHorizontalFlip"};
}

static bool same_fields(const stk_batch *a, const stk_batch *b)
{
    bool same = stk_samples(a) == stk_samples(b);
    for (int i = 0; stk_field_at(a, i) && same; i++) {
        const stk_array *x = stk_field_at(a, i), *y = stk_field(b, x->name);
        same =
            y && x->dtype == y->dtype && x->ndim == y->ndim && x->kind == y->kind && field_bytes(x) == field_bytes(y);
        for (int d = 0; d < x->ndim && same; d++)
            same = x->shape[d] == y->shape[d];
        if (!same)
            break;
        uint8_t *here = read_field(a, x), *there = read_field(b, y);
        same = memcmp(here, there, field_bytes(x)) == 0;
        free(here);
        free(there);
    }
    return same;
}

/* Compares all batches of some epochs. */
static void compare(const stk_options *o, const char *device, int epochs)
{
    stk_options there = *o;
    there.device = device;
    stk_loader *a = open_loader(o), *b = open_loader(&there);
    for (int ended = 0; ended < epochs;) {
        stk_batch *x, *y;
        stk_error e = {0};
        const int rc = stk_next(a, &x, &e), other = stk_next(b, &y, &e);
        CHECK_EQ(rc, other);
        if (rc == STK_OK && other == STK_OK) {
            CHECK(same_fields(x, y));
            CHECK_EQ(stk_field(y, "label")->device, 2);
            CHECK(stk_field(y, "label")->ready != NULL);
            CHECK_EQ(stk_field(y, "index")->device, 1);
        }
        stk_release(x);
        stk_release(y);
        ended += rc != STK_OK;
        if (rc != STK_OK && rc != STK_END)
            break;
    }
    stk_close(a);
    stk_close(b);
}

/* ------------------------------------------------------------------ cases */

/* This comes first: afterwards the driver is open. */
static void host_memory_needs_no_driver(void)
{
    stk_options o = some_options();
    stk_loader *l = open_loader(&o);
    stk_batch *b;
    CHECK_EQ(stk_next(l, &b, NULL), STK_OK);
    CHECK_EQ(stk_batch_use(b, NULL, NULL), STK_OK);
    CHECK_EQ(stk_field(b, "image")->device, 1);
    stk_release(b);
    stk_close(l);
    o.device = "cpu";
    stk_close(open_loader(&o));
    char line[512];
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && fgets(line, sizeof line, f))
        CHECK(!strstr(line, "libcuda"));
    if (f)
        fclose(f);
    ready = open_driver();
    if (!ready)
        SKIP("there is no GPU");
}

static void all_forms_are_equal(void)
{
    NEEDS_GPU();
    const stk_dtype types[] = {STK_FLOAT32, STK_FLOAT16, STK_BFLOAT16, STK_UINT8};
    const char *const ops[] = {"RandomCrop((11, 8))", "RandomCrop((7, 5))", "RandomCrop((3, 3)) | Grayscale(1)",
                               "RandomCrop(8) | Grayscale(1)"};
    for (int t = 0; t < 4; t++)
        for (int i = 0; i < 4; i++)
            for (stk_layout layout = STK_NCHW; layout <= STK_NHWC; layout++) {
                char text[128];
                snprintf(text, sizeof text, "%s%s", ops[i],
                         types[t] == STK_UINT8 ? ""
                         : i < 2               ? " | Normalize"
                                               : " | Normalize(mean=0.3, std=0.7)");
                stk_options o = some_options();
                o.dtype = types[t];
                o.layout = layout;
                o.ops = text;
                compare(&o, "cuda", 1);
            }
}

static void epochs_and_short_batches_are_equal(void)
{
    NEEDS_GPU();
    stk_options o = some_options();
    compare(&o, "cuda:0", 3);
    o.pad_last = 1;
    compare(&o, "cuda", 2);
    o.pad_last = 0;
    o.batch_size = 1;
    compare(&o, "cuda", 2);
    o.batch_size = 500;
    compare(&o, "cuda", 2);
}

/* Some ops work on floats, or combine rows: then finished rows are sent. */
static void ops_on_finished_rows_are_equal(void)
{
    NEEDS_GPU();
    const char *const ops[] = {"RandomCrop((11, 8)) | Normalize | RandomErasing(p=1, value=random)",
                               "RandomCrop((11, 8)) | Normalize | MixUp(num_classes=1100)",
                               "RandomCrop((11, 8)) | ColorJitter(0.4, 0.4, 0.4) | RandomHorizontalFlip | Normalize"};
    for (int i = 0; i < 3; i++) {
        stk_options o = some_options();
        o.ops = ops[i];
        o.layout = i == 1 ? STK_NHWC : STK_NCHW;
        compare(&o, "cuda", 2);
    }
}

static int flip_bits(void *user, const stk_row *row, stk_error *e)
{
    (void)user, (void)e;
    float *x = row->to;
    x[0] = -x[0];
    return STK_OK;
}

static void ops_of_the_caller_see_finished_rows(void)
{
    NEEDS_GPU();
    const stk_op_hook op = {.run = flip_bits};
    stk_options o = some_options();
    o.op = &op;
    compare(&o, "cuda", 1);
}

/* ------------------------------------------------------------------ a source with bad rows, text and ragged numbers */

static int64_t count(void *user)
{
    (void)user;
    return SAMPLES;
}

static int cells(void *user, int thread, int64_t sample, const int *wanted, int n, stk_cell *to, stk_error *e)
{
    static const char *const texts[] = {"", "a", "word", "some words"};
    static const int32_t numbers[] = {5, 4, 3, 2, 1};
    (void)user, (void)thread;
    if (sample % 17 == 5 && e) {
        snprintf(e->reason, sizeof e->reason, "is unlucky");
        return STK_EDATA;
    }
    for (int i = 0; i < n; i++) {
        to[i] = (stk_cell){.bytes = &labels[sample], .n = 8, .dtype = STK_INT64};
        if (wanted[i] == 1)
            to[i] = (stk_cell){.bytes = texts[sample % 4], .n = strlen(texts[sample % 4])};
        if (wanted[i] == 2)
            to[i] = (stk_cell){.bytes = numbers,
                               .n = 4 * (size_t)(sample % 5 + 1),
                               .dtype = STK_INT32,
                               .ndim = 1,
                               .shape = {sample % 5 + 1}};
    }
    return STK_OK;
}

static void text_and_ragged_fields_are_equal(void)
{
    NEEDS_GPU();
    static const int64_t any[] = {-1};
    const stk_column columns[] = {{.name = "label", .kind = STK_INT, .label = 1},
                                  {.name = "caption", .kind = STK_TEXT},
                                  {.name = "ids", .kind = STK_TENSOR, .dtype = STK_INT32, .ndim = 1, .shape = any}};
    const stk_cells_hooks hooks = {.count = count, .cells = cells, .columns = columns, .n_columns = 3};
    const stk_on_error policies[] = {STK_SKIP, STK_REPLACE};
    for (int i = 0; i < 2; i++) {
        stk_options o = {.cells_hooks = &hooks,
                         .batch_size = BATCH,
                         .threads = 3,
                         .on_error = policies[i],
                         .max_bad = 1,
                         .memory = 256 << 20};
        compare(&o, "cuda", 2);
    }
    stk_options o = {.cells_hooks = &hooks, .batch_size = BATCH, .device = "cuda", .memory = 256 << 20, .take = 5};
    stk_loader *l = open_loader(&o);
    stk_batch *b;
    CHECK_EQ(stk_next(l, &b, NULL), STK_OK);
    CHECK_EQ(stk_field(b, "caption")->device, 1);
    CHECK_EQ(stk_field(b, "caption.offsets")->device, 1);
    CHECK_EQ(stk_field(b, "ids")->device, 2);
    CHECK_EQ(stk_field(b, "ids.offsets")->device, 2);
    stk_release(b);
    stk_close(l);
}

/* The caller reads each batch late, in its own stream, and releases it at once. */
static void released_batches_are_not_overwritten(void)
{
    NEEDS_GPU();
    enum { KEPT = 16 };
    static uint8_t late[KEPT][BATCH * 11 * 8 * 3 * 4], now[sizeof late[0]];
    stk_options o = some_options();
    stk_loader *host = open_loader(&o);
    o.device = "cuda";
    stk_loader *l = open_loader(&o);
    enter();
    void *stream = NULL;
    CHECK_EQ(cu.stream_create(&stream, CUDA_STREAM_NON_BLOCKING), 0);
    for (int round = 0; round < 4; round++) {
        int n = 0;
        for (; n < KEPT; n++) {
            stk_batch *b;
            int rc = stk_next(l, &b, NULL);
            if (rc == STK_END)
                rc = stk_next(l, &b, NULL);
            CHECK_EQ(rc, STK_OK);
            CHECK_EQ(stk_batch_use(b, stream, NULL), STK_OK);
            const stk_array *x = stk_field(b, "image");
            CHECK_EQ(cu.copy_out(late[n], (uint64_t)(uintptr_t)x->data, field_bytes(x), stream), 0);
            stk_release(b);
        }
        CHECK_EQ(cu.stream_synchronize(stream), 0);
        for (int i = 0; i < n; i++) {
            stk_batch *b;
            int rc = stk_next(host, &b, NULL);
            if (rc == STK_END)
                rc = stk_next(host, &b, NULL);
            CHECK_EQ(rc, STK_OK);
            const stk_array *x = stk_field(b, "image");
            memcpy(now, x->data, field_bytes(x));
            CHECK(memcmp(late[i], now, field_bytes(x)) == 0);
            stk_release(b);
        }
    }
    stk_close(l);
    stk_close(host);
    cu.stream_destroy(stream);
    leave();
}

static void kept_batches_outlive_the_loader(void)
{
    NEEDS_GPU();
    enum { KEPT = 5 };
    stk_options o = some_options();
    stk_loader *host = open_loader(&o);
    o.device = "cuda";
    const int before = live ? live() : 0;
    stk_loader *l = open_loader(&o);
    stk_batch *kept[KEPT];
    for (int i = 0; i < KEPT; i++)
        CHECK_EQ(stk_next(l, &kept[i], NULL), STK_OK);
    stk_stats s;
    CHECK_EQ(stk_stats_get(l, &s), STK_OK);
    CHECK(s.copied_bytes >= KEPT * BATCH * (11 * 8 * 3 + 8));
    CHECK(s.device_bytes >= KEPT * BATCH * (11 * 8 * 3 * 4 + 8));
    char text[4096];
    stk_explain(l, text, sizeof text);
    CHECK_SAYS(text, "images cross the bus as bytes and become float32 NCHW");
    stk_close(l); /* copies of prefetched batches may be under way */
    for (int i = 0; i < KEPT; i++) {
        stk_batch *b;
        CHECK_EQ(stk_next(host, &b, NULL), STK_OK);
        CHECK(same_fields(b, kept[i]));
        stk_release(b);
    }
    stk_memory *m = stk_batch_retain_field(kept[0], "image");
    for (int i = 0; i < KEPT; i++)
        stk_release(kept[i]);
    stk_memory_release(m);
    stk_close(host);
    if (live)
        CHECK_EQ(live(), before);
}

static void restarts_and_single_rows_are_equal(void)
{
    NEEDS_GPU();
    stk_options o = some_options();
    stk_loader *host = open_loader(&o);
    o.device = "cuda";
    stk_loader *l = open_loader(&o);
    for (int epoch = 5; epoch > 0; epoch--) {
        stk_batch *a, *b;
        CHECK_EQ(stk_set_epoch(host, epoch, NULL), STK_OK);
        CHECK_EQ(stk_set_epoch(l, epoch, NULL), STK_OK);
        CHECK_EQ(stk_next(host, &a, NULL), STK_OK);
        CHECK_EQ(stk_next(l, &b, NULL), STK_OK);
        CHECK(same_fields(a, b));
        stk_release(a);
        stk_release(b);
        const int64_t samples[] = {7, 3, 9, 1, 0, 2, 4, 5, 6, 8, 10, 11}; /* more than a batch has */
        for (int64_t n = 0; n <= 12; n += 6) {
            CHECK_EQ(stk_loader_get(host, samples, NULL, n, epoch, &a, NULL), STK_OK);
            CHECK_EQ(stk_loader_get(l, samples, NULL, n, epoch, &b, NULL), STK_OK);
            CHECK(same_fields(a, b));
            stk_release(a);
            stk_release(b);
        }
    }
    stk_close(l);
    stk_close(host);
}

static void captured_streams_are_left_alone(void)
{
    NEEDS_FAKE();
    stk_options o = some_options();
    o.device = "cuda";
    stk_loader *l = open_loader(&o);
    enter();
    void *stream = NULL;
    cu.stream_create(&stream, 0);
    stk_batch *b;
    CHECK_EQ(stk_next(l, &b, NULL), STK_OK);
    capture(stream, 1);
    CHECK_EQ(stk_batch_use(b, stream, NULL), STK_OK);
    stk_release(b);
    capture(stream, 0);
    for (int i = 0; i < 30; i++) {
        const int rc = stk_next(l, &b, NULL);
        CHECK(rc == STK_OK || rc == STK_END);
        stk_release(b);
    }
    stk_close(l);
    cu.stream_destroy(stream);
    leave();
}

/* ------------------------------------------------------------------ errors */

static void fails(const char *machine, const char *device, int code, const char *words)
{
    stk_loader *l = NULL;
    stk_error e = {0};
    stk_options o = some_options();
    o.device = device;
    setenv("STOKER_FAKE_CUDA", machine, 1);
    CHECK_EQ(stk_open(&l, &o, &e), code);
    CHECK(!l);
    CHECK_SAYS(e.text, words);
    unsetenv("STOKER_FAKE_CUDA");
}

static void bad_devices_are_named(void)
{
    NEEDS_FAKE();
    const int before = live();
    fails("", "gpu", STK_EUSAGE, "it must be \"cpu\", \"cuda\" or \"cuda:N\"");
    fails("", "cuda:x", STK_EUSAGE, "cuda:N");
    fails("", "cuda:1", STK_EUSAGE, "there is no cuda:1: this process sees 1 GPU");
    fails("devices=2", "cuda:99999", STK_EUSAGE, "cuda:N");
    fails("devices=0", "cuda", STK_EDEVICE, "it finds no GPU");
    fails("init=100", "cuda", STK_EDEVICE, "it finds no GPU");
    fails("init=999", "cuda", STK_EDEVICE, "cannot start CUDA");
    fails("capability=61", "cuda", STK_EDEVICE, "has compute capability 6.1, and 7.5 is needed");
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    fails("", "cuda", STK_EDEVICE, "because CUDA_VISIBLE_DEVICES is \"\"");
    unsetenv("CUDA_VISIBLE_DEVICES");
    CHECK_EQ(live(), before);
}

static void too_little_memory_is_reported(void)
{
    NEEDS_FAKE();
    const int before = live();
    fails("memory=20000", "cuda", STK_ENOMEM, "2 batches of 8 rows need 1 MiB");
    setenv("STOKER_FAKE_CUDA", "memory=28000", 1); /* two batches of 8.5 kB, and the bytes of one */
    stk_options o = some_options();
    compare(&o, "cuda", 2);
    o.device = "cuda";
    stk_loader *l = open_loader(&o);
    stk_batch *kept[8] = {0};
    stk_error e = {0};
    int rc = STK_OK, n = 0;
    while (n < 8 && (rc = stk_next(l, &kept[n], &e)) == STK_OK)
        n++;
    CHECK_EQ(rc, STK_ENOMEM);
    CHECK(n >= 2);
    CHECK_SAYS(e.text, "keep fewer batches");
    for (int i = 0; i < n; i++)
        stk_release(kept[i]);
    stk_batch *b;
    CHECK_EQ(stk_next(l, &b, &e), STK_OK); /* there is room again */
    stk_release(b);
    stk_close(l);
    unsetenv("STOKER_FAKE_CUDA");
    CHECK_EQ(live(), before);
}

static void a_broken_gpu_ends_in_an_error(void)
{
    NEEDS_FAKE();
    const int before = live();
    stk_options o = some_options();
    o.device = "cuda";
    stk_loader *l = open_loader(&o);
    stk_batch *b, *kept;
    stk_error e = {0};
    CHECK_EQ(stk_next(l, &kept, &e), STK_OK);
    break_all(700);
    int rc = STK_OK;
    for (int i = 0; i < 20 && (rc == STK_OK || rc == STK_END); i++) {
        rc = stk_next(l, &b, &e);
        stk_release(b);
    }
    CHECK_EQ(rc, STK_EDEVICE);
    CHECK_SAYS(e.text, "an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS)");
    stk_release(kept);
    stk_close(l);
    break_all(0);
    CHECK_EQ(live(), before);
}

static void forked_children_get_an_error(void)
{
    NEEDS_GPU();
    stk_options o = some_options();
    o.device = "cuda";
    stk_loader *l = open_loader(&o);
    stk_batch *b;
    CHECK_EQ(stk_next(l, &b, NULL), STK_OK);
    const pid_t child = fork();
    if (child == 0) {
        stk_batch *none;
        stk_loader *other;
        stk_error e = {0};
        bool good = stk_next(l, &none, &e) == STK_EFORK && stk_batch_use(b, NULL, &e) == STK_EFORK;
        good = good && stk_open(&other, &o, &e) == STK_EDEVICE && strstr(e.text, "\"spawn\"");
        stk_release(b);
        stk_close(l);
        _exit(good ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK_EQ(status, 0);
    stk_release(b);
    stk_close(l);
}

int main(int argc, char **argv)
{
    for (int s = 0; s < SAMPLES; s++) {
        labels[s] = 1000 + s;
        for (size_t i = 0; i < sizeof pixels[0]; i++)
            (&pixels[s][0][0][0])[i] = (uint8_t)((size_t)s * 37 + i * i * 11 + i / 7);
    }
    TESTS(T(host_memory_needs_no_driver), T(all_forms_are_equal), T(epochs_and_short_batches_are_equal),
          T(ops_on_finished_rows_are_equal), T(ops_of_the_caller_see_finished_rows),
          T(text_and_ragged_fields_are_equal), T(released_batches_are_not_overwritten),
          T(kept_batches_outlive_the_loader), T(restarts_and_single_rows_are_equal), T(captured_streams_are_left_alone),
          T(bad_devices_are_named), T(too_little_memory_is_reported), T(a_broken_gpu_ends_in_an_error),
          T(forked_children_get_an_error))
}
