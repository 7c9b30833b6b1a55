/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_driver.c -- opens CUDA's driver and a device, and puts its errors into words.
 *
 * The driver is never closed again: other libraries of the process may use it, and it has threads of its own.
 */
#include "cuda/cuda_driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cuda/cuda_ptx.h"

#define LEAVE_OUT "or leave device out to get batches in host memory"

/* ------------------------------------------------------------------ errors */

static int fail(stk_error *e, const char *words)
{
    return error_set(e, STK_EDEVICE, "device", "%s", words);
}

int cuda_failed(const struct cuda_api *api, int rc, const char *what, stk_error *e)
{
    const char *name = NULL, *text = NULL;
    api->error_name(rc, &name);
    api->error_text(rc, &text);
    if (rc == CUDA_OUT_OF_MEMORY)
        return error_set(e, STK_ENOMEM, "device", "%s: the GPU is out of memory; use a smaller batch_size, %s", what,
                         "or free memory that other programs use");
    if (rc == CUDA_NOT_INITIALIZED)
        return error_set(e, STK_EDEVICE, "device",
                         "%s: CUDA does not work in a process that was forked after its parent used CUDA; start "
                         "processes with the method \"spawn\"",
                         what);
    return error_set(e, STK_EDEVICE, "device",
                     "%s: %s (%s); if a kernel of this program failed earlier, its error is reported here: fix that "
                     "kernel, and start the program again",
                     what, text ? text : "unknown error", name ? name : "no name");
}

static int no_build(stk_error *e)
{
    return error_set(
        e, STK_EBUILD, "device",
        "this build of Stoker has no GPU path, because nvcc was missing; install nvcc and build it again, " LEAVE_OUT);
}

static const char *visible(void)
{
    return getenv("CUDA_VISIBLE_DEVICES");
}

static int no_device(stk_error *e)
{
    if (visible())
        return error_set(e, STK_EDEVICE, "device",
                         "CUDA finds no GPU, because CUDA_VISIBLE_DEVICES is \"%.64s\"; set it to the indices of the "
                         "GPUs to use, " LEAVE_OUT,
                         visible());
    return fail(e, "NVIDIA's driver is installed, but it finds no GPU; check `nvidia-smi`, " LEAVE_OUT);
}

/* ------------------------------------------------------------------ the driver */

static int load(struct cuda_api *api, stk_error *e)
{
    static const char *const symbols[] = {
#define CUDA_SYMBOL(name, symbol, arguments) symbol,
        CUDA_FUNCTIONS(CUDA_SYMBOL)};
    _Static_assert(sizeof *api == sizeof symbols / sizeof symbols[0] * sizeof(void *), "a table of functions");
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return fail(e, "a GPU needs NVIDIA's driver, and this machine has none (there is no libcuda.so.1); install "
                       "the driver, " LEAVE_OUT);
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *found = dlsym(library, symbols[i]);
        if (!found)
            return error_set(e, STK_EDEVICE, "device",
                             "NVIDIA's driver is too old: it lacks %s; install version 450 or newer, " LEAVE_OUT,
                             symbols[i]);
        memcpy((char *)api + i * sizeof found, &found, sizeof found);
    }
    return STK_OK;
}

static int start(struct cuda_api *api, int *devices, stk_error *e)
{
    int rc = load(api, e);
    if (rc != STK_OK)
        return rc;
    rc = api->init(0);
    if (rc == 0)
        rc = api->device_count(devices);
    if (rc == CUDA_NO_DEVICE || (rc == 0 && *devices == 0))
        return no_device(e);
    return rc == 0 ? STK_OK : cuda_failed(api, rc, "cannot start CUDA", e);
}

int cuda_parse(const char *device, int *index)
{
    *index = 0;
    if (strncmp(device, "cuda", 4) != 0)
        return -1;
    if (!device[4])
        return 0;
    int used = 0;
    return device[4] == ':' && device[5] >= '0' && device[5] <= '9' && sscanf(device + 5, "%4d%n", index, &used) == 1 &&
                   !device[5 + used]
               ? 0
               : -1;
}

/* ------------------------------------------------------------------ a device */

enum { CAPABILITY = 75 }; /* 7.5, for which the kernels are compiled */

static int capability(const struct cuda_api *api, int device)
{
    int major = 0, minor = 0;
    api->device_attribute(&major, CUDA_ATTRIBUTE_MAJOR, device);
    api->device_attribute(&minor, CUDA_ATTRIBUTE_MINOR, device);
    return 10 * major + minor;
}

static int find_device(struct cuda *c, int devices, stk_error *e)
{
    if (c->index >= devices)
        return error_set(e, STK_EUSAGE, "device",
                         "there is no cuda:%d: this process sees %d GPU%s, from cuda:0 on%s%.64s%s", c->index, devices,
                         devices == 1 ? "" : "s", visible() ? " (CUDA_VISIBLE_DEVICES is \"" : "",
                         visible() ? visible() : "", visible() ? "\")" : "");
    int rc = c->api.device_get(&c->device, c->index);
    if (rc == 0)
        rc = c->api.device_name(c->name, sizeof c->name, c->device);
    if (rc == 0)
        rc = c->api.device_attribute(&c->multiprocessors, CUDA_ATTRIBUTE_MULTIPROCESSORS, c->device);
    if (rc != 0)
        return cuda_failed(&c->api, rc, "cannot find the GPU", e);
    const int has = capability(&c->api, c->device);
    return has >= CAPABILITY ? STK_OK
                             : error_set(e, STK_EDEVICE, "device",
                                         "cuda:%d (%s) has compute capability %d.%d, and 7.5 is needed; choose another "
                                         "GPU, " LEAVE_OUT,
                                         c->index, c->name, has / 10, has % 10);
}

/* The driver compiles the kernels for its GPU, and keeps the result on disk for the next program. */
static int load_module(struct cuda *c, stk_error *e)
{
    const int rc = c->api.module_load(&c->module, cuda_ptx);
    if (rc == 0)
        return STK_OK;
    int version = 0;
    c->api.driver_version(&version);
    if (rc == CUDA_UNSUPPORTED_PTX || rc == CUDA_NO_BINARY || rc == CUDA_BAD_PTX)
        return error_set(
            e, STK_EDEVICE, "device",
            "NVIDIA's driver (CUDA %d.%d) cannot compile the kernels for %s; update the driver, " LEAVE_OUT,
            version / 1000, version % 1000 / 10, c->name);
    return cuda_failed(&c->api, rc, "cannot load the kernels", e);
}

static int open_context(struct cuda *c, stk_error *e)
{
    int rc = c->api.context_retain(&c->context, c->device);
    if (rc != 0) {
        c->context = NULL;
        return cuda_failed(&c->api, rc, "cannot use the GPU", e);
    }
    int mode;
    rc = cuda_enter(c, &mode, e);
    if (rc != STK_OK)
        return rc;
    rc = c->api.stream_create(&c->stream, CUDA_STREAM_NON_BLOCKING);
    rc = rc == 0 ? load_module(c, e) : cuda_failed(&c->api, rc, "cannot create a stream", e);
    cuda_leave(c, mode);
    return rc;
}

int cuda_open(struct cuda **out, const char *device, stk_error *e)
{
    *out = NULL;
    int index, devices = 0;
    if (cuda_parse(device, &index))
        return error_set(e, STK_EUSAGE, "device", "device is \"%.64s\"; it must be \"cpu\", \"cuda\" or \"cuda:N\"",
                         device);
    if (!cuda_ptx[0])
        return no_build(e);
    struct cuda *c = calloc(1, sizeof *c);
    if (!c)
        return error_nomem(e, "device", sizeof *c);
    atomic_init(&c->refs, 1);
    pthread_mutex_init(&c->lock, NULL);
    c->index = index;
    int rc = start(&c->api, &devices, e);
    if (rc == STK_OK)
        rc = find_device(c, devices, e);
    if (rc == STK_OK)
        rc = open_context(c, e);
    if (rc == STK_OK)
        *out = c;
    else
        cuda_unref(c);
    return rc;
}

void cuda_ref(struct cuda *c)
{
    atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
}

void cuda_unref(struct cuda *c)
{
    if (!c || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1)
        return;
    int mode;
    if (c->context && cuda_enter(c, &mode, NULL) == STK_OK) {
        if (c->stream)
            c->api.stream_destroy(c->stream);
        if (c->module)
            c->api.module_unload(c->module);
        cuda_leave(c, mode);
    }
    if (c->context)
        c->api.context_release(c->device);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

int cuda_enter(struct cuda *c, int *mode, stk_error *e)
{
    const int rc = c->api.context_push(c->context);
    if (rc != 0)
        return cuda_failed(&c->api, rc, "cannot use the GPU", e);
    *mode = CUDA_CAPTURE_RELAXED;
    c->api.capture_mode(mode);
    return STK_OK;
}

void cuda_leave(struct cuda *c, int mode)
{
    void *context;
    c->api.capture_mode(&mode);
    c->api.context_pop(&context);
}

/* ------------------------------------------------------------------ what there is */

int stk_gpu_get(int i, stk_gpu *out, stk_error *e)
{
    struct cuda_api api;
    int devices = 0, version = 0, device = 0;
    size_t bytes = 0;
    if (!cuda_ptx[0])
        return no_build(e);
    int rc = start(&api, &devices, e);
    if (rc != STK_OK || i < 0 || i >= devices)
        return rc == STK_OK ? STK_END : rc;
    *out = (stk_gpu){0};
    rc = api.device_get(&device, i);
    if (rc == 0)
        rc = api.device_name(out->name, sizeof out->name, device);
    if (rc == 0)
        rc = api.device_memory(&bytes, device);
    if (rc == 0)
        rc = api.driver_version(&version);
    if (rc != 0)
        return cuda_failed(&api, rc, "cannot query the GPU", e);
    snprintf(out->cuda, sizeof out->cuda, "%d.%d", version / 1000, version % 1000 / 10);
    out->memory = (int64_t)bytes;
    out->capability = capability(&api, device);
    return STK_OK;
}
