/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_jpeg_entropy.c -- compares coefficients with jpeg_read_coefficients, for generated images, the photos and the
 * corpus; compares skipping and jumping with reading.
 */
#include "support/images.h"

#ifdef HAVE_JPEG

#include <setjmp.h>

#include "decode/jpeg_entropy.h"
#include "support/jpegs.h"

enum { BLOCKS = 6 };

/* Room for the blocks of one MCU. */
struct mcu {
    int16_t coef[BLOCKS][JPEG_BLOCK];
    uint8_t last[BLOCKS];
};

static struct jpeg_blocks places(const struct jpeg_frame *f, struct mcu *m)
{
    struct jpeg_blocks b = {0};
    int n = 0;
    memset(m, 0, sizeof *m);
    for (int c = 0; c < f->n_components; c++)
        for (int v = 0; v < f->component[c].v; v++, n += f->component[c].h) {
            b.coef[c][v] = m->coef[n];
            b.last[c][v] = m->last + n;
        }
    return b;
}

static bool read_one(struct jpeg_scan *s, struct mcu *m)
{
    const struct jpeg_blocks b = places(s->frame, m);
    return jpeg_scan_read(s, 1, &b);
}

static bool last_is_right(const struct mcu *m, int block)
{
    for (int i = m->last[block] + 1; i < JPEG_BLOCK; i++)
        if (m->coef[block][jpeg_zigzag[i]] != 0)
            return false;
    return m->last[block] < JPEG_BLOCK;
}

struct reference {
    struct jpeg_decompress_struct c;
    struct jpeg_error_mgr err;
    jmp_buf jump;
};

static void on_error(j_common_ptr c)
{
    longjmp(((struct reference *)c->client_data)->jump, 1);
}

static void on_message(j_common_ptr c)
{
    (void)c;
}

/* Compares the blocks of one MCU, except those beyond the edge of the image. */
static bool same_mcu(struct reference *r, jvirt_barray_ptr *arrays, const struct jpeg_frame *f, int32_t x, int32_t y,
                     const struct mcu *m)
{
    bool same = true;
    int n = 0;
    for (int c = 0; c < f->n_components; c++)
        for (int v = 0; v < f->component[c].v; v++)
            for (int h = 0; h < f->component[c].h; h++, n++) {
                const JDIMENSION row = (JDIMENSION)(y * f->component[c].v + v);
                const JDIMENSION column = (JDIMENSION)(x * f->component[c].h + h);
                if (row >= r->c.comp_info[c].height_in_blocks || column >= r->c.comp_info[c].width_in_blocks)
                    continue;
                JBLOCKARRAY block = r->c.mem->access_virt_barray((j_common_ptr)&r->c, arrays[c], row, 1, FALSE);
                same &= memcmp(block[0][column], m->coef[n], sizeof m->coef[n]) == 0 && last_is_right(m, n);
            }
    return same;
}

static int64_t compared;

/* Compares all coefficients. Also returns true if our decoder does not take the image, or the image is damaged at its
 * end. */
static bool same_coefficients(struct huff_store *store, const uint8_t *bytes, size_t n)
{
    struct jpeg_frame f;
    struct jpeg_scan s;
    if (!jpeg_frame_read(&f, bytes, n) || !jpeg_scan_begin(&s, &f, store, bytes, n))
        return true;
    struct reference r;
    r.c.err = jpeg_std_error(&r.err);
    r.err.error_exit = on_error;
    r.err.output_message = on_message;
    jpeg_create_decompress(&r.c);
    r.c.client_data = &r;
    volatile bool same = true;
    if (setjmp(r.jump) == 0) {
        jpeg_mem_src(&r.c, bytes, n);
        jpeg_read_header(&r.c, TRUE);
        jvirt_barray_ptr *arrays = jpeg_read_coefficients(&r.c);
        for (int32_t i = 0; i < f.mcus_x * f.mcus_y && same; i++) {
            struct mcu m;
            if (!read_one(&s, &m))
                break;
            same = same_mcu(&r, arrays, &f, i % f.mcus_x, i / f.mcus_x, &m);
            compared++;
        }
    }
    jpeg_destroy_decompress(&r.c);
    return same;
}

static void made_ones(void)
{
    struct huff_store *store = huff_store_new();
    compared = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        uint32_t seed = i * 2654435761u;
        const struct jpeg_spec s = jpeg_spec_random(&seed, 100);
        size_t n;
        unsigned char *bytes = jpeg_made(&s, &n);
        CHECK(same_coefficients(store, bytes, n));
        free(bytes);
    }
    CHECK(compared > 10000);
    huff_store_free(store);
}

/* Reading, or skipping, from any MCU on, given its bit and its predictors, gives the same coefficients. */
static void jumps(void)
{
    struct huff_store *store = huff_store_new();
    for (uint32_t i = 0; i < 200; i++) {
        uint32_t seed = i * 2654435761u;
        struct jpeg_spec spec = jpeg_spec_random(&seed, 60);
        spec.w += 8;
        size_t n;
        unsigned char *bytes = jpeg_made(&spec, &n);
        struct jpeg_frame f;
        struct jpeg_scan s, jumped, skipped;
        struct mcu a, b;
        CHECK(jpeg_frame_read(&f, bytes, n) && jpeg_scan_begin(&s, &f, store, bytes, n));
        for (int32_t k = 0; k < f.mcus_x * f.mcus_y; k++) {
            CHECK(jpeg_scan_settle(&s));
            CHECK(jpeg_scan_begin(&jumped, &f, store, bytes, n) && jpeg_scan_begin(&skipped, &f, store, bytes, n));
            CHECK(jpeg_scan_jump(&jumped, k, jpeg_scan_at(&s), s.dc));
            CHECK(jpeg_scan_skip(&skipped, k) && jpeg_scan_settle(&skipped));
            CHECK_EQ(jpeg_scan_at(&jumped), jpeg_scan_at(&s));
            CHECK_EQ(jpeg_scan_at(&skipped), jpeg_scan_at(&s));
            CHECK(read_one(&s, &a) && read_one(&jumped, &b));
            CHECK(memcmp(&a, &b, sizeof a) == 0);
            CHECK_EQ(jpeg_scan_at(&jumped), jpeg_scan_at(&s));
            CHECK(memcmp(s.dc, jumped.dc, sizeof s.dc) == 0);
        }
        CHECK(jpeg_scan_is_over(&s) && jpeg_scan_has_more(&s));
        CHECK(!read_one(&s, &a));
        free(bytes);
    }
    huff_store_free(store);
}

static void absurd_jumps(void)
{
    struct huff_store *store = huff_store_new();
    const struct jpeg_spec spec = {40, 30, 1, 1, 80, 3, true, 1, false};
    size_t n;
    unsigned char *bytes = jpeg_made(&spec, &n);
    struct jpeg_frame f;
    struct jpeg_scan s;
    const int16_t dc[JPEG_COMPONENTS] = {0};
    CHECK(jpeg_frame_read(&f, bytes, n) && jpeg_scan_begin(&s, &f, store, bytes, n));
    CHECK(!jpeg_scan_jump(&s, 0, f.scan * 8 - 1, dc));
    CHECK(!jpeg_scan_jump(&s, 0, (n + 1) * 8, dc));
    CHECK(!jpeg_scan_jump(&s, 0, UINT64_MAX, dc));
    for (size_t bit = f.scan * 8; bit <= n * 8 + 7; bit++) {
        struct mcu m;
        CHECK(jpeg_scan_jump(&s, (int64_t)(bit % 20), bit, dc));
        while (read_one(&s, &m))
            jpeg_scan_at(&s);
        jpeg_scan_has_more(&s);
    }
    free(bytes);
    huff_store_free(store);
}

struct visit {
    struct huff_store *store;
    int every, files, bad;
};

static void visit_file(const char *path, struct buf *b, void *user)
{
    struct visit *v = user;
    if (v->files++ % v->every == 0 && !same_coefficients(v->store, b->data, b->len) && v->bad++ < 5)
        printf("%s: other coefficients\n", path);
}

static void real_ones(void)
{
    const char *data = getenv("STOKER_TEST_DATA");
    if (!data)
        SKIP("STOKER_TEST_DATA is not set");
    static const struct {
        const char *name;
        int every;
    } folders[] = {{"photos", 8}, {"corpus", 1}};
    for (size_t i = 0; i < 2; i++) {
        struct visit v = {.store = huff_store_new(), .every = folders[i].every};
        char folder[4096];
        compared = 0;
        snprintf(folder, sizeof folder, "%s/%s", data, folders[i].name);
        each_file(folder, 4, visit_file, &v);
        CHECK(compared > 0);
        CHECK_EQ(v.bad, 0);
        huff_store_free(v.store);
    }
}

int main(int argc, char **argv)
{
    TESTS(T(made_ones), T(jumps), T(absurd_jumps), T(real_ones))
}

#else

int main(void)
{
    printf("skipped: no JPEG in this build\n");
    return 77;
}

#endif
