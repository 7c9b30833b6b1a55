/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_jpeg_groups.c -- the coded bytes of crops, compared with a scan whose stuffing was removed byte by byte.
 */
#include "support/images.h"

#ifdef HAVE_JPEG

#include "decode/jpeg_groups.h"
#include "support/jpegs.h"

enum { ROOM = 1 << 20 };

/* A file, its checkpoints, and its scan without stuffing: byte i of the file is byte place[i] of `plain`. */
struct sample {
    unsigned char *bytes;
    size_t n;
    struct jpeg_frame f;
    struct jpeg_checkpoints c;
    uint8_t *plain;
    size_t *place;
};

static void sample_init(struct sample *s, struct jpegs *j, uint32_t number)
{
    const struct rect everything = {0};
    struct buf blob = {0};
    uint32_t seed = number * 2654435761u + 1;
    struct jpeg_spec spec = jpeg_spec_random(&seed, 250);
    spec.w += 8;
    spec.restart = 0;
    *s = (struct sample){0};
    s->bytes = jpeg_made(&spec, &s->n);
    j->checkpoints = &blob;
    CHECK(jpegs_compare(j, s->bytes, s->n, &everything, true, "whole"));
    CHECK(jpeg_frame_read(&s->f, s->bytes, s->n));
    CHECK(jpeg_checkpoints_read(&s->c, blob.data, blob.len, &s->f, s->bytes, s->n));
    buf_done(&blob);
    s->plain = malloc(s->n);
    s->place = malloc((s->n + 1) * sizeof *s->place);
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        s->place[i] = n;
        if (s->bytes[i] != 0 || s->bytes[i - 1] != 0xff)
            s->plain[n++] = s->bytes[i];
    }
}

static void sample_done(struct sample *s)
{
    jpeg_checkpoints_done(&s->c);
    free(s->bytes);
    free(s->plain);
    free(s->place);
}

/* From the first bit of a group to that of the next one. */
static void check_group(const struct sample *s, const uint8_t *region, const struct jpeg_group *g,
                        const struct jpeg_checkpoint *at)
{
    const size_t from = s->place[at[0].bit / 8], end = 8 * s->place[at[1].bit / 8] + at[1].bit % 8;
    CHECK_EQ(g[0].bit % 8, at[0].bit % 8);
    CHECK_EQ(g[1].bit - g[0].bit, end - 8 * from - at[0].bit % 8);
    CHECK(g[1].bit <= 8 * g[1].stop && g[0].stop == g[1].stop);
    CHECK(memcmp(region + g[0].bit / 8, s->plain + from, (end + 7) / 8 - from) == 0);
    CHECK(memcmp(g[0].dc, at[0].dc, sizeof g[0].dc) == 0 && memcmp(g[1].dc, at[1].dc, sizeof g[1].dc) == 0);
}

static void check_region(const struct sample *s, const struct dct_region *p)
{
    const size_t tables = (size_t)s->f.n_components * (2 * JPEG_BLOCK + 2 * JPEG_GROUP_CODES);
    const struct jpeg_group *g = (const struct jpeg_group *)(const void *)(p->to + tables);
    const int32_t across = (p->across + p->every - 1) / p->every;
    uint32_t stop = (uint32_t)(tables + (size_t)(across + 1) * (size_t)p->down * sizeof *g);
    CHECK_EQ(stop % 16, 0);
    for (int32_t y = 0; y < p->down; y++) {
        CHECK_EQ(g->bit / 8, stop); /* where the last row stops */
        for (int32_t x = 0; x < across; x++, g++)
            check_group(s, p->to, g, &s->c.at[(p->y + y) * s->c.across + p->x / p->every + x]);
        stop = (g++)->stop;
    }
    CHECK_EQ(p->used, stop + JPEG_GROUPS_SLACK);
}

static void crops(void)
{
    static _Alignas(16) uint8_t room[ROOM];
    struct jpegs j;
    CHECK(jpegs_init(&j, STK_CPU_DEFAULT));
    for (uint32_t i = 0; i < 300; i++) {
        struct sample s;
        sample_init(&s, &j, i);
        for (uint32_t k = 0, seed = i; k < 5; k++) {
            const struct rect crop = test_image_crop(s.f.w, s.f.h, &seed);
            const struct jpeg_need need = jpeg_frame_need(&s.f, &crop, false);
            struct dct_region p = {.to = room, .room = ROOM};
            CHECK(jpeg_groups_write(&p, &s.f, &need, &s.c, s.bytes, s.n));
            check_region(&s, &p);
            struct dct_region less = {.to = room, .room = p.used - 1};
            CHECK(!jpeg_groups_write(&less, &s.f, &need, &s.c, s.bytes, s.n) && less.used == 0);
        }
        sample_done(&s);
    }
    jpegs_done(&j);
}

/* A marker anywhere among the bytes is refused, also one whose FF is the last byte. */
static void markers(void)
{
    static _Alignas(16) uint8_t room[ROOM];
    struct jpegs j;
    struct sample s;
    int refused = 0;
    CHECK(jpegs_init(&j, STK_CPU_DEFAULT));
    sample_init(&s, &j, 3);
    const struct jpeg_need all = {.x1 = s.f.mcus_x, .y1 = s.f.mcus_y, .end = s.f.mcus_y};
    for (size_t i = s.f.scan; i + 2 < s.n; i++) {
        struct dct_region p = {.to = room, .room = ROOM};
        const uint8_t old = s.bytes[i];
        s.bytes[i] = 0xff;
        const bool marker = s.bytes[i + 1] != 0 || s.bytes[i - 1] == 0xff;
        CHECK_EQ(jpeg_groups_write(&p, &s.f, &all, &s.c, s.bytes, s.n), !marker);
        refused += marker;
        s.bytes[i] = old;
    }
    CHECK(refused > 100);
    sample_done(&s);
    jpegs_done(&j);
}

int main(int argc, char **argv)
{
    TESTS(T(crops), T(markers))
}

#else

int main(void)
{
    printf("skipped: no JPEG in this build\n");
    return 77;
}

#endif
