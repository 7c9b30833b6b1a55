/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_jpeg_checkpoints.c -- checkpoints: as bytes, damaged, of other files; crops decoded with them are compared with
 * libjpeg. Also covers jpeg_walk.c.
 */
#include "support/images.h"

#ifdef HAVE_JPEG

#include "base/hash.h"
#include "decode/jpeg_checkpoints.h"
#include "support/jpegs.h"

static const struct rect everything = {0};

static unsigned char *some_file(uint32_t number, struct jpeg_spec *s, size_t *n)
{
    uint32_t seed = number * 2654435761u + 1;
    *s = jpeg_spec_random(&seed, 250);
    s->w += 8; /* our decoder takes all of them */
    return jpeg_made(s, n);
}

/* ------------------------------------------------------------------ crops */

/* Decodes crops one after the other, each with the checkpoints that the crops before it made. */
static void growing(void)
{
    struct jpegs j;
    CHECK(jpegs_init(&j, STK_CPU_DEFAULT));
    for (uint32_t i = 0; i < 400; i++) {
        struct jpeg_spec s;
        struct buf checkpoints = {0}, at_once = {0};
        size_t n, last = 0;
        uint32_t seed = i;
        unsigned char *bytes = some_file(i, &s, &n);
        j.checkpoints = &checkpoints;
        for (int k = 0; k < 6; k++) {
            const struct rect crop = test_image_crop(s.w, s.h, &seed);
            CHECK(jpegs_compare(&j, bytes, n, &crop, false, "growing"));
            CHECK(checkpoints.len >= last);
            last = checkpoints.len;
        }
        CHECK(jpegs_compare(&j, bytes, n, &everything, false, "growing"));
        j.checkpoints = &at_once;
        CHECK(jpegs_compare(&j, bytes, n, &everything, true, "at once"));
        CHECK(checkpoints.len == at_once.len && memcmp(checkpoints.data, at_once.data, checkpoints.len) == 0);
        buf_done(&checkpoints);
        buf_done(&at_once);
        free(bytes);
    }
    CHECK_EQ(j.different, 0);
    jpegs_done(&j);
}

static struct buf checkpoints_of(struct jpegs *j, const uint8_t *bytes, size_t n)
{
    struct buf checkpoints = {0};
    j->checkpoints = &checkpoints;
    CHECK(jpegs_compare(j, bytes, n, &everything, true, "all"));
    j->checkpoints = NULL;
    return checkpoints;
}

/* One crop and a second one make all of them, and a file that is cut off is judged as before. */
static void completed(void)
{
    struct jpegs j;
    int64_t completed = 0;
    CHECK(jpegs_init(&j, STK_CPU_DEFAULT));
    for (uint32_t i = 0; i < 400; i++) {
        struct jpeg_spec s;
        struct buf checkpoints = {0};
        size_t n;
        uint32_t seed = i;
        unsigned char *bytes = some_file(i, &s, &n);
        struct buf all = checkpoints_of(&j, bytes, n);
        const size_t kept = i % 4 ? n : n - noise(&seed) % (n / 2);
        j.checkpoints = &checkpoints;
        for (int k = 0; k < 6; k++) {
            const struct rect crop = test_image_crop(s.w, s.h, &seed);
            j.complete = k > 0;
            const bool ours = jpegs_compare(&j, bytes, kept, &crop, false, "completed");
            if (ours && k > 0 && kept == n && s.restart == 0)
                CHECK(checkpoints.len == all.len && memcmp(checkpoints.data, all.data, all.len) == 0);
            completed += ours && k > 0;
        }
        j.complete = false;
        buf_done(&checkpoints);
        buf_done(&all);
        free(bytes);
    }
    CHECK(completed > 1500);
    CHECK_EQ(j.different, 0);
    jpegs_done(&j);
}

/* Damage outside the crop is not noticed. Damage inside is judged by libjpeg. */
static void later_damage(void)
{
    struct jpegs j;
    struct jpeg_spec s;
    size_t n;
    CHECK(jpegs_init(&j, STK_CPU_DEFAULT));
    for (uint32_t i = 0; i < 100; i++) {
        uint32_t seed = i + 50;
        unsigned char *bytes = some_file(i, &s, &n);
        struct buf checkpoints = checkpoints_of(&j, bytes, n);
        const size_t at = n - 2 - noise(&seed) % (n / 3 + 1);
        bytes[at] ^= (uint8_t)(1 + noise(&seed) % 255);
        j.checkpoints = &checkpoints;
        /* Everything is read, including the damage. */
        const struct rect bottom = {0, 0, s.w, s.h};
        jpegs_compare(&j, bytes, n, &bottom, false, "later damage");
        buf_done(&checkpoints);
        free(bytes);
    }
    CHECK_EQ(j.different, 0);
    jpegs_done(&j);
}

/* ------------------------------------------------------------------ bytes */

/* The number of checkpoints stays within its limit, however large an image is. */
static void measures(void)
{
    static const int32_t sides[] = {1, 8, 500, 4000, 12000, 65500};
    for (size_t i = 0; i < 6; i++)
        for (size_t k = 0; k < 6; k++) {
            struct jpeg_frame f = {.w = sides[i], .h = sides[k], .sampling = JPEG_444, .n_components = 3};
            struct jpeg_checkpoints p = {0};
            CHECK(jpeg_frame_measure(&f));
            jpeg_checkpoints_reset(&p, &f);
            CHECK(p.every % CHECKPOINT_EVERY == 0 && p.every * p.across >= f.mcus_x);
            CHECK((int64_t)p.across * f.mcus_y < CHECKPOINTS_MAX);
            CHECK(p.every == CHECKPOINT_EVERY || (int64_t)f.mcus_x * f.mcus_y > CHECKPOINTS_MAX);
        }
}

static void refused(struct jpegs *j, const uint8_t *blob, size_t size, const uint8_t *bytes, size_t n)
{
    struct jpeg_frame f;
    struct jpeg_checkpoints p = {0};
    CHECK(jpeg_frame_read(&f, bytes, n));
    CHECK(!jpeg_checkpoints_read(&p, blob, size, &f, bytes, n));
    CHECK_EQ(p.n, 0);
    jpeg_checkpoints_done(&p);
    struct buf checkpoints = {0};
    buf_add(&checkpoints, blob, size);
    j->checkpoints = &checkpoints;
    const struct rect crop = {1, 1, 5, 5};
    CHECK(jpegs_compare(j, bytes, n, &crop, false, "refused"));
    buf_done(&checkpoints);
    j->checkpoints = NULL;
}

static void damaged_bytes(void)
{
    struct jpegs j;
    struct jpeg_spec s;
    size_t n, other_n;
    CHECK(jpegs_init(&j, STK_CPU_DEFAULT));
    const struct jpeg_spec large = {150, 120, 2, 2, 90, 0, true, 3, false};
    unsigned char *bytes = jpeg_made(&large, &n), *other = some_file(9, &s, &other_n);
    struct buf checkpoints = checkpoints_of(&j, bytes, n);
    CHECK(checkpoints.len > 100);
    for (size_t i = 0; i < checkpoints.len; i++)
        for (int bit = 0; bit < 8; bit++) {
            checkpoints.data[i] ^= (uint8_t)(1 << bit);
            refused(&j, checkpoints.data, checkpoints.len, bytes, n);
            checkpoints.data[i] ^= (uint8_t)(1 << bit);
        }
    for (size_t keep = 0; keep < checkpoints.len; keep++)
        refused(&j, checkpoints.data, keep, bytes, n);
    refused(&j, checkpoints.data, checkpoints.len, other, other_n);
    CHECK_EQ(j.different, 0);
    buf_done(&checkpoints);
    free(bytes);
    free(other);
    jpegs_done(&j);
}

/* Decodes a crop with these checkpoints by our decoder alone, and reads the head. */
static void by_us(struct jpegs *j, const uint8_t *bytes, size_t n, struct head *h, const struct rect *crop,
                  const struct buf *checkpoints, struct image *out)
{
    CHECK_EQ(decode_head(bytes, n, &(struct decode_limits){0}, h, NULL), STK_OK);
    CHECK_EQ(arena_reserve(&j->ours, jpeg_baseline_scratch(crop)), 0);
    const struct image_job job = {.bytes = bytes,
                                  .n = n,
                                  .head = h,
                                  .crop = *crop,
                                  .checkpoints = checkpoints->data,
                                  .checkpoint_bytes = checkpoints->len,
                                  .checkpoints_wanted = true,
                                  .arena = &j->ours};
    CHECK(jpeg_baseline_pixels(j->own, &job, out));
}

/* Invented checkpoints with a correct checksum: decoding ends safely, whatever they say. */
static void made_up(void)
{
    struct jpegs j;
    struct jpeg_spec s;
    size_t n;
    CHECK(jpegs_init(&j, STK_CPU_DEFAULT));
    unsigned char *bytes = some_file(8, &s, &n);
    struct buf right = checkpoints_of(&j, bytes, n), checkpoints = {0};
    for (uint32_t i = 0; i < 3000; i++) {
        uint32_t seed = i;
        checkpoints.len = 0;
        buf_add(&checkpoints, right.data, right.len);
        for (uint32_t flips = 1 + noise(&seed) % 3; flips > 0; flips--)
            checkpoints.data[noise(&seed) % (checkpoints.len - 8)] = (uint8_t)noise(&seed);
        const uint64_t sum = hash_bytes(checkpoints.data, checkpoints.len - 8, 0);
        for (int k = 0; k < 8; k++)
            checkpoints.data[checkpoints.len - 8 + (size_t)k] = (uint8_t)(sum >> 8 * k);
        struct ranges ranges;
        const struct rect crop = test_image_crop(s.w, s.h, &seed);
        jpeg_checkpoints_ranges(checkpoints.data, checkpoints.len, &crop, 1, 0, &ranges);
        struct head h;
        struct image im;
        by_us(&j, bytes, n, &h, &crop, &checkpoints, &im);
    }
    buf_done(&right);
    buf_done(&checkpoints);
    free(bytes);
    jpegs_done(&j);
}

/* ------------------------------------------------------------------ ranges */

/* Returns a copy of a file that has only these ranges, with garbage between them. */
static uint8_t *only(const struct ranges *p, const uint8_t *bytes, size_t n, uint8_t rubbish)
{
    uint8_t *part = malloc(n);
    memset(part, rubbish, n);
    for (int k = 0; k < p->n; k++) {
        CHECK(p->at[k].from < p->at[k].to && p->at[k].to <= n && (k == 0 || p->at[k].from > p->at[k - 1].to));
        memcpy(part + p->at[k].from, bytes + p->at[k].from, (size_t)(p->at[k].to - p->at[k].from));
    }
    return part;
}

/* Decodes from ranges of a file. The image is in j->ours. */
static int from_ranges(struct jpegs *j, const uint8_t *bytes, size_t n, const struct head *h, const struct want *w,
                       const struct buf *checkpoints, struct image *out)
{
    int warnings;
    CHECK_EQ(arena_reserve(&j->ours, decode_scratch(h, w)), 0);
    decoder_lend_checkpoints(j->decoder, checkpoints->data, checkpoints->len, false);
    const int rc = decode_pixels(j->decoder, bytes, n, h, w, &j->ours, out, &warnings, NULL);
    CHECK_EQ(warnings, 0);
    return rc;
}

/* The pixels do not depend on the bytes between the ranges. Fewer ranges are refused. */
static void check_ranges(struct jpegs *j, const uint8_t *bytes, size_t n, const struct head *h, const struct ranges *p,
                         const struct want *want, const struct buf *checkpoints)
{
    static const uint8_t rubbish[] = {0, 0xff, 0xee, 0xd0};
    struct want w = *want;
    struct image ours, theirs;
    int warnings;
    w.reference = true;
    CHECK_EQ(arena_reserve(&j->theirs, decode_scratch(h, &w)), 0);
    CHECK_EQ(decode_pixels(j->decoder, bytes, n, h, &w, &j->theirs, &theirs, &warnings, NULL), STK_OK);
    w.reference = false;
    w.ranges = p;
    for (int i = 0; i < 4; i++) {
        uint8_t *part = only(p, bytes, n, rubbish[i]);
        CHECK_EQ(from_ranges(j, part, n, h, &w, checkpoints, &ours), STK_OK);
        CHECK(same_pixels(&ours, &theirs));
        free(part);
    }
    struct ranges less = *p;
    less.at[less.n - 1].to--;
    w.ranges = &less;
    CHECK_EQ(from_ranges(j, bytes, n, h, &w, checkpoints, &ours), STK_EDATA);
    less.at[less.n - 1].to++;
    less.at[0].from++;
    CHECK_EQ(from_ranges(j, bytes, n, h, &w, checkpoints, &ours), STK_EDATA);
}

/* Crops of all kinds, shrunk ones too, are decoded from the ranges that they need. */
static void ranges(void)
{
    struct jpegs j;
    CHECK(jpegs_init(&j, STK_CPU_DEFAULT));
    const struct decode_limits limits = {0};
    int64_t all = 0, taken = 0, several = 0;
    for (uint32_t i = 0; i < 400; i++) {
        struct jpeg_spec s;
        size_t n;
        uint32_t seed = i;
        unsigned char *bytes = some_file(i, &s, &n);
        struct buf checkpoints = checkpoints_of(&j, bytes, n);
        struct head h, known;
        CHECK_EQ(decode_head(bytes, n, &limits, &h, NULL), STK_OK);
        CHECK(decode_checkpoint_head(checkpoints.data, checkpoints.len, &limits, &known));
        CHECK(known.w == h.w && known.h == h.h && known.orientation == h.orientation && known.format == h.format);
        const int shrink = i % 4 == 0 ? 1 << i / 4 % 4 : 1;
        const struct want w = {
            .shrink = shrink, .crop = test_image_crop((s.w + shrink - 1) / shrink, (s.h + shrink - 1) / shrink, &seed)};
        struct ranges p;
        if (decode_checkpoint_ranges(checkpoints.data, checkpoints.len, &known, &w, i % 3 * 100, &p)) {
            check_ranges(&j, bytes, n, &h, &p, &w, &checkpoints);
            several += p.n > 2;
            for (int k = 0; k < p.n; k++)
                taken += (int64_t)(p.at[k].to - p.at[k].from);
            all += (int64_t)n;
        }
        CHECK(!decode_checkpoint_ranges(checkpoints.data, checkpoints.len - 1, &known, &w, 0, &p));
        free(bytes);
        buf_done(&checkpoints);
    }
    printf("%.1f MB of %.1f MB, %d of 400 in several places\n", (double)taken / 1e6, (double)all / 1e6, (int)several);
    CHECK(all > 0 && taken < all * 3 / 4 && several > 30);
    jpegs_done(&j);
}

/* Another file, or a changed one, is not decoded from ranges, and no error is reported for it. */
static void ranges_of_others(void)
{
    struct jpegs j;
    CHECK(jpegs_init(&j, STK_CPU_DEFAULT));
    const struct jpeg_spec spec = {240, 220, 2, 2, 90, 0, true, 3, false};
    size_t n;
    unsigned char *bytes = jpeg_made(&spec, &n);
    struct buf checkpoints = checkpoints_of(&j, bytes, n);
    const struct decode_limits limits = {0};
    struct head h;
    struct ranges p;
    struct image im;
    CHECK_EQ(decode_head(bytes, n, &limits, &h, NULL), STK_OK);
    struct want w = {.crop = {150, 80, 60, 60}};
    CHECK(decode_checkpoint_ranges(checkpoints.data, checkpoints.len, &h, &w, 0, &p) && p.n > 2);
    w.ranges = &p;
    CHECK_EQ(from_ranges(&j, bytes, n, &h, &w, &checkpoints, &im), STK_OK);
    CHECK_EQ(from_ranges(&j, bytes, n - 1, &h, &w, &checkpoints, &im), STK_EDATA); /* another size */
    CHECK_EQ(from_ranges(&j, bytes, n, &h, &w, &(struct buf){0}, &im), STK_EDATA);
    for (size_t at = 2; at < (size_t)p.at[0].to - 32; at++) { /* another head */
        bytes[at] ^= 1;
        CHECK_EQ(from_ranges(&j, bytes, n, &h, &w, &checkpoints, &im), STK_EDATA);
        bytes[at] ^= 1;
    }
    memset(bytes + p.at[1].from + 40, 0x55, 20); /* other content, which the ranges do not include */
    CHECK_EQ(from_ranges(&j, bytes, n, &h, &w, &checkpoints, &im), STK_EDATA);
    h.format = STK_PNG;
    CHECK_EQ(from_ranges(&j, bytes, n, &h, &w, &checkpoints, &im), STK_EDATA);
    free(bytes);
    buf_done(&checkpoints);
    jpegs_done(&j);
}

/* ------------------------------------------------------------------ photos */

struct visit {
    struct jpegs j;
    int files;
    int64_t file_bytes, checkpoint_bytes;
};

static void visit_photo(const char *path, struct buf *b, void *user)
{
    struct visit *v = user;
    const struct decode_limits limits = {.no_exif = true};
    struct head h;
    if (v->files++ % 8 != 0 || decode_head(b->data, b->len, &limits, &h, NULL) != STK_OK)
        return;
    struct buf checkpoints = {0};
    uint32_t seed = (uint32_t)v->files;
    v->j.checkpoints = &checkpoints;
    for (int i = 0; i < 4; i++) {
        const struct rect crop = test_image_crop(h.w, h.h, &seed);
        jpegs_compare(&v->j, b->data, b->len, &crop, false, path);
    }
    jpegs_compare(&v->j, b->data, b->len, &everything, false, path);
    if (checkpoints.len) {
        v->file_bytes += (int64_t)b->len;
        v->checkpoint_bytes += (int64_t)checkpoints.len;
    }
    buf_done(&checkpoints);
}

static void photos(void)
{
    const char *data = getenv("STOKER_TEST_DATA");
    if (!data)
        SKIP("STOKER_TEST_DATA is not set");
    struct visit v = {0};
    char folder[4096];
    CHECK(jpegs_init(&v.j, STK_CPU_DEFAULT));
    snprintf(folder, sizeof folder, "%s/photos", data);
    each_file(folder, 2, visit_photo, &v);
    CHECK_EQ(v.j.different, 0);
    CHECK(v.file_bytes > 0);
    printf("checkpoints take %.2f %% of the photos' bytes\n", 100. * (double)v.checkpoint_bytes / (double)v.file_bytes);
    CHECK(v.checkpoint_bytes < v.file_bytes * 24 / 1000);
    jpegs_done(&v.j);
}

int main(int argc, char **argv)
{
    TESTS(T(growing), T(completed), T(later_damage), T(measures), T(damaged_bytes), T(made_up), T(ranges),
          T(ranges_of_others), T(photos))
}

#else

int main(void)
{
    printf("skipped: no JPEG in this build\n");
    return 77;
}

#endif
