/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode.c -- chooses the codec by the first bytes, applies the limits, turns images upright.
 *
 * A codec returns the wanted crop as it is stored. If the orientation is 1, the crop is passed on as it is, inside rows
 * that may be wider. Otherwise it is copied once.
 */
#include "decode/decode.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "base/error.h"
#include "decode/codec.h"
#include "decode/dct_image.h"
#include "decode/orient.h"
#include "decode/sniff.h"

static const char stage[] = "decode";

enum { N_FORMATS = STK_WEBP + 1 };

/* By stk_format; NULL: not in this build. */
static const struct codec *const codecs[N_FORMATS] = {
#ifdef HAVE_JPEG
    [STK_JPEG] = &codec_jpeg,
#endif
#ifdef HAVE_PNG
    [STK_PNG] = &codec_png,
#endif
#ifdef HAVE_WEBP
    [STK_WEBP] = &codec_webp,
#endif
    [STK_FORMAT_UNKNOWN] = NULL,
};

struct decoder {
    void *states[N_FORMATS];
    const uint8_t *checkpoints; /* lent for the next image */
    size_t checkpoint_bytes;
    bool checkpoints_wanted, checkpoints_complete;
    stk_format checkpointed; /* format of the last image, if checkpoints were wanted; else STK_FORMAT_UNKNOWN */
};

const char *format_name(stk_format f)
{
    static const char *const names[N_FORMATS] = {"unknown", "JPEG", "PNG", "WebP"};
    return (unsigned)f < N_FORMATS ? names[f] : names[0];
}

static const struct codec *codec_of(stk_format f)
{
    return (unsigned)f < N_FORMATS ? codecs[f] : NULL;
}

const char *decode_version(stk_format f)
{
    const struct codec *c = codec_of(f);
    return c ? c->version() : NULL;
}

int codec_no_arena(stk_error *e)
{
    return error_set(e, STK_EBUG, stage, "the decoder got less memory than it had reserved; please report this");
}

/* ------------------------------------------------------------------ life */

int decoder_new(struct decoder **out, stk_cpu cpu, stk_error *e)
{
    const int rc = cpu == STK_CPU_DEFAULT ? cpu_choose(cpu, &cpu, e) : STK_OK;
    if (rc != STK_OK)
        return rc;
    struct decoder *d = calloc(1, sizeof *d);
    if (!d)
        return error_nomem(e, stage, sizeof *d);
    for (int f = 0; f < N_FORMATS; f++) {
        if (!codecs[f] || !codecs[f]->open)
            continue;
        d->states[f] = codecs[f]->open(cpu);
        if (!d->states[f]) {
            decoder_free(d);
            return error_set(e, STK_ENOMEM, stage, "no memory for a decoder");
        }
    }
    *out = d;
    return STK_OK;
}

void decoder_free(struct decoder *d)
{
    if (!d)
        return;
    for (int f = 0; f < N_FORMATS; f++)
        if (d->states[f])
            codecs[f]->close(d->states[f]);
    free(d);
}

/* ------------------------------------------------------------------ head */

static int not_an_image(const uint8_t *bytes, size_t n, stk_error *e)
{
    if (n == 0)
        return error_set(e, STK_EDATA, stage, "is empty");
    const struct sniffed s = sniff(bytes, n);
    if (s.format && !codecs[s.format])
        return error_set(e, STK_EBUILD, stage, "is a %s image, but this build has no decoder for it", s.name);
    char words[SNIFF_WORDS];
    sniff_words(&s, bytes, n, words);
    return error_set(e, STK_EDATA, stage, "%s", words);
}

static const struct codec *find(const uint8_t *bytes, size_t n)
{
    for (int f = 0; f < N_FORMATS; f++)
        if (codecs[f] && codecs[f]->match(bytes, n))
            return codecs[f];
    return NULL;
}

/* "256 million", or all digits of a small count. */
static void pixels_words(int64_t n, char *buf, size_t size)
{
    if (n < 1000000)
        snprintf(buf, size, "%lld", (long long)n);
    else
        snprintf(buf, size, "%lld million", (long long)(n / 1000000));
}

static int check_size(const struct head *h, int64_t max_pixels, stk_error *e)
{
    if (h->w <= 0 || h->h <= 0)
        return error_set(e, STK_EDATA, stage, "has no pixels (%d x %d)", h->w, h->h);
    const int64_t pixels = (int64_t)h->w * h->h;
    if (max_pixels == 0 || pixels <= max_pixels)
        return STK_OK;
    char has[32], may[32];
    pixels_words(pixels, has, sizeof has);
    pixels_words(max_pixels, may, sizeof may);
    return error_set(e, STK_EDATA, stage, "%dx%d is %s pixels, over the limit of %s; raise max_pixels", h->w, h->h, has,
                     may);
}

/* Checks the limits, and sets the orientation as they ask. */
static int settle_head(struct head *h, const struct decode_limits *limits, struct head *out, stk_error *e)
{
    const int rc = check_size(h, limits->max_pixels, e);
    if (rc != STK_OK)
        return rc;
    if (h->orientation != 1)
        h->odd |= STK_ODD_ROTATED;
    if (limits->no_exif)
        h->orientation = 1;
    *out = *h;
    return STK_OK;
}

static int dct_file_head(const uint8_t *bytes, size_t n, const struct decode_limits *limits, struct head *out,
                         stk_error *e)
{
    int rc = dct_image_check_file(bytes, n, e);
    if (rc == STK_OK)
        rc = decode_dct_head(bytes + DCT_FILE_HEAD, n - DCT_FILE_HEAD, limits, out, e);
    out->dct = true;
    return rc;
}

int decode_head(const uint8_t *bytes, size_t n, const struct decode_limits *limits, struct head *out, stk_error *e)
{
    if (dct_image_is_file(bytes, n))
        return dct_file_head(bytes, n, limits, out, e);
    const struct codec *c = find(bytes, n);
    if (!c)
        return not_an_image(bytes, n, e);
    struct head h = {.format = c->format, .orientation = 1};
    const int rc = c->head(bytes, n, &h, e);
    return rc == STK_OK ? settle_head(&h, limits, out, e) : rc;
}

/* ------------------------------------------------------------------ pixels */

static bool inside(const struct rect *r, int32_t w, int32_t h)
{
    return r->x >= 0 && r->y >= 0 && r->w > 0 && r->h > 0 && r->w <= w - r->x && r->h <= h - r->y;
}

static int32_t shrunk(int32_t side, const struct want *w)
{
    return w->shrink > 1 ? (side + w->shrink - 1) / w->shrink : side;
}

int decode_shrink(const struct head *h)
{
    return h->format == STK_JPEG && h->bits == 8 && !(h->odd & STK_ODD_LOSSLESS) ? 8 : 1;
}

static bool possible(const struct codec *c, const struct head *h, const struct want *w)
{
    return c && inside(&w->crop, shrunk(head_width(h), w), shrunk(head_height(h), w)) &&
           (w->shrink <= 1 || (w->shrink <= decode_shrink(h) && (w->shrink & (w->shrink - 1)) == 0));
}

static struct rect stored_crop(const struct head *h, const struct want *w)
{
    return orient_stored(h->orientation, shrunk(h->w, w), shrunk(h->h, w), w->crop);
}

/* A crop that includes the last row is judged by the end of the file as well, as Pillow judges a whole image. */
static bool to_end(const struct head *h, const struct want *w, const struct rect *crop)
{
    return w->whole || crop->y + crop->h == shrunk(h->h, w);
}

size_t decode_scratch(const struct head *h, const struct want *w)
{
    const struct codec *c = codec_of(h->format);
    if (!possible(c, h, w))
        return 0;
    const struct rect crop = stored_crop(h, w);
    size_t n = c->scratch(h, &crop, to_end(h, w, &crop));
    if (h->orientation != 1)
        n = size_add(n, arena_cost(rgb_bytes(crop.w, crop.h)));
    return n == SIZE_MAX ? 0 : n;
}

size_t decode_foreign(const struct head *h, const struct want *w)
{
    const struct codec *c = codec_of(h->format);
    if (h->dct || !possible(c, h, w))
        return 0;
    const struct rect crop = stored_crop(h, w);
    return c->foreign(h, &crop, to_end(h, w, &crop));
}

static int turn_upright(const struct head *h, struct arena *a, struct image *im, stk_error *e)
{
    const bool swap = h->orientation > 4;
    const int32_t w = swap ? im->h : im->w, rows = swap ? im->w : im->h;
    uint8_t *px = arena_alloc(a, rgb_bytes(w, rows));
    if (!px)
        return codec_no_arena(e);
    orient_pixels(h->orientation, im, px);
    *im = (struct image){.px = px, .stride = (size_t)w * 3, .w = w, .h = rows, .channels = 3};
    return STK_OK;
}

static int check_crop(const struct codec *c, const struct head *h, const struct want *w, stk_error *e)
{
    if (possible(c, h, w))
        return STK_OK;
    return error_set(e, STK_EBUG, stage, "a crop of %dx%d at %d,%d is outside the image of %dx%d, shrunk by %d",
                     w->crop.w, w->crop.h, w->crop.x, w->crop.y, head_width(h), head_height(h), w->shrink);
}

static struct image_job job_of(const uint8_t *bytes, size_t n, const struct head *h, const struct want *w,
                               struct arena *a)
{
    const struct rect crop = stored_crop(h, w);
    return (struct image_job){.bytes = bytes,
                              .n = n,
                              .head = h,
                              .crop = crop,
                              .shrink = w->shrink,
                              .whole = to_end(h, w, &crop),
                              .reference = w->reference,
                              .indices = w->indices,
                              .ranges = w->ranges,
                              .arena = a};
}

size_t decode_checkpoints_bytes(const struct head *h, size_t n)
{
    return h->odd & CODEC_HELD ? n + n / 2 : n / 50;
}

void decoder_lend_checkpoints(struct decoder *d, const void *checkpoints, size_t n, bool complete)
{
    d->checkpoints = checkpoints;
    d->checkpoint_bytes = checkpoints ? n : 0;
    d->checkpoints_wanted = true;
    d->checkpoints_complete = complete;
}

const void *decoder_new_checkpoints(const struct decoder *d, size_t *n)
{
    const struct codec *c = codec_of(d->checkpointed);
    *n = 0;
    return c && c->checkpoints ? c->checkpoints(d->states[d->checkpointed], n) : NULL;
}

void decoder_drop_checkpoints(struct decoder *d)
{
    d->checkpoints = NULL;
    d->checkpoint_bytes = 0;
    d->checkpoints_wanted = d->checkpoints_complete = false;
    d->checkpointed = STK_FORMAT_UNKNOWN;
}

/* Moves what was lent for an image into its job. */
static void take_checkpoints(struct decoder *d, struct image_job *job)
{
    job->checkpoints = d->checkpoints;
    job->checkpoint_bytes = d->checkpoint_bytes;
    job->checkpoints_wanted = d->checkpoints_wanted && !job->reference;
    job->checkpoints_complete = d->checkpoints_complete;
    decoder_drop_checkpoints(d);
    if (job->checkpoints_wanted)
        d->checkpointed = job->head->format;
}

/* Only JPEG has checkpoints that contain a head. */
bool decode_checkpoint_head(const void *checkpoints, size_t n, const struct decode_limits *limits, struct head *out)
{
    const struct codec *c = codec_of(STK_JPEG);
    struct head h;
    if (!c || !c->checkpoint_head(checkpoints, n, &h) || (h.orientation == 0 && !limits->no_exif) || h.orientation > 8)
        return false;
    return settle_head(&h, limits, out, NULL) == STK_OK;
}

bool decode_checkpoint_ranges(const void *checkpoints, size_t n, const struct head *h, const struct want *w,
                              size_t apart, struct ranges *out)
{
    const struct codec *c = codec_of(h->format);
    if (!possible(c, h, w) || !c->checkpoint_ranges || w->whole || w->reference)
        return false;
    const struct rect crop = stored_crop(h, w);
    return c->checkpoint_ranges(checkpoints, n, &crop, w->shrink, apart, out);
}

/* Pixels with warnings come from damaged data. Then the whole file is judged, as Pillow judges it: what the codec
 * makes up for a missing part of a crop must not pass as an image. */
static int judged_pixels(const struct codec *c, void *state, struct image_job *job, struct image *out, int *warnings,
                         stk_error *e)
{
    const size_t used = job->arena->used;
    const int rc = c->pixels(state, job, out, warnings, e);
    if (rc != STK_OK || *warnings == 0 || job->whole)
        return rc;
    job->arena->used = used;
    job->whole = true;
    return c->pixels(state, job, out, warnings, e);
}

int decode_pixels(struct decoder *d, const uint8_t *bytes, size_t n, const struct head *h, const struct want *w,
                  struct arena *a, struct image *out, int *warnings, stk_error *e)
{
    const struct codec *c = codec_of(h->format);
    *warnings = 0;
    if (h->dct) {
        decoder_drop_checkpoints(d);
        return decode_dct_pixels(d, bytes + DCT_FILE_HEAD, n - DCT_FILE_HEAD, h, w, a, out, e);
    }
    int rc = check_crop(c, h, w, e);
    if (rc == STK_OK && w->ranges && !c->checkpoint_ranges)
        rc = error_set(e, STK_EDATA, stage, "cannot be decoded from some ranges of its file; read all of it");
    if (rc != STK_OK) {
        decoder_drop_checkpoints(d);
        return rc;
    }
    struct image_job job = job_of(bytes, n, h, w, a);
    take_checkpoints(d, &job);
    rc = judged_pixels(c, d->states[h->format], &job, out, warnings, e);
    return rc == STK_OK && h->orientation != 1 ? turn_upright(h, a, out, e) : rc;
}

/* ------------------------------------------------------------------ DCT images */

/* Only JPEG has DCT images. */
static const struct codec *dct_codec(void)
{
    const struct codec *c = codec_of(STK_JPEG);
    return c && c->to_dct ? c : NULL;
}

static int no_dct(stk_error *e)
{
    return error_set(e, STK_EBUILD, stage, "this build cannot decode DCT images: it was built without libjpeg");
}

/* A job for the whole of a JPEG, with the file's own orientation even if it is to be ignored: later readers may want
 * it. */
static bool whole_job(const uint8_t *bytes, size_t n, const struct head *h, struct head *own, struct image_job *out)
{
    const struct codec *c = dct_codec();
    *own = (struct head){.format = STK_JPEG, .orientation = 1};
    if (!c || h->format != STK_JPEG || c->head(bytes, n, own, NULL) != STK_OK || own->w != h->w || own->h != h->h)
        return false;
    *out = (struct image_job){.bytes = bytes, .n = n, .head = own, .crop = {0, 0, own->w, own->h}, .whole = true};
    return true;
}

bool decode_to_dct(struct decoder *d, const uint8_t *bytes, size_t n, const struct head *h, struct buf *out)
{
    struct head own;
    struct image_job job;
    return whole_job(bytes, n, h, &own, &job) && dct_codec()->to_dct(d->states[STK_JPEG], &job, out);
}

bool decode_to_dct_file(struct decoder *d, const uint8_t *bytes, size_t n, const struct head *h, struct buf *out)
{
    const size_t begin = out->len;
    if (h->dct || dct_image_begin_file(out) || !decode_to_dct(d, bytes, n, h, out)) {
        out->len = begin;
        return false;
    }
    dct_image_end_file(out, begin);
    return true;
}

int decode_dct_file_to_jpeg(const uint8_t *bytes, size_t n, struct buf *out, stk_error *e)
{
    const struct codec *c = dct_codec();
    const int rc = dct_image_check_file(bytes, n, e);
    if (rc != STK_OK)
        return rc;
    return c ? c->from_dct(bytes + DCT_FILE_HEAD, n - DCT_FILE_HEAD, out, e) : no_dct(e);
}

size_t decode_jpeg_foreign(const struct head *h)
{
    const struct codec *c = dct_codec();
    const struct rect all = {0, 0, h->w, h->h};
    struct head held = *h;
    held.odd |= CODEC_HELD;
    return c ? c->foreign(&held, &all, true) : 0;
}

bool decode_rewrite(struct decoder *d, const uint8_t *bytes, size_t n, const struct head *h, struct buf *out)
{
    struct head own;
    struct image_job job;
    return whole_job(bytes, n, h, &own, &job) && own.bits == 8 && !(own.odd & STK_ODD_LOSSLESS) &&
           own.odd & (STK_ODD_PROGRESSIVE | STK_ODD_ARITHMETIC | CODEC_HELD) &&
           dct_codec()->rewrite(d->states[STK_JPEG], &job, out);
}

int decode_dct_head(const uint8_t *dct, size_t n, const struct decode_limits *limits, struct head *out, stk_error *e)
{
    const struct codec *c = dct_codec();
    if (!c)
        return no_dct(e);
    struct head h;
    const int rc = c->dct_head(dct, n, &h, e);
    return rc == STK_OK ? settle_head(&h, limits, out, e) : rc;
}

int decode_dct_pixels(struct decoder *d, const uint8_t *dct, size_t n, const struct head *h, const struct want *w,
                      struct arena *a, struct image *out, stk_error *e)
{
    const struct codec *c = dct_codec();
    if (!c)
        return no_dct(e);
    int rc = check_crop(c, h, w, e);
    if (rc != STK_OK)
        return rc;
    const struct image_job job = job_of(dct, n, h, w, a);
    rc = c->dct_pixels(d->states[STK_JPEG], &job, out, e);
    return rc == STK_OK && h->orientation != 1 ? turn_upright(h, a, out, e) : rc;
}

bool decode_region(struct decoder *d, const uint8_t *bytes, size_t n, const struct head *h, const struct want *w,
                   bool dct, struct dct_region *out)
{
    const struct codec *c = dct_codec();
    const bool file = h->dct && !dct;
    out->used = 0;
    if (!c || out->room == 0 || h->format != STK_JPEG || h->orientation != 1 || w->shrink > 1 || !possible(c, h, w)) {
        decoder_drop_checkpoints(d);
        return false;
    }
    struct image_job job = job_of(file ? bytes + DCT_FILE_HEAD : bytes, file ? n - DCT_FILE_HEAD : n, h, w, NULL);
    job.region = out;
    if (dct || file)
        decoder_drop_checkpoints(d);
    else
        take_checkpoints(d, &job);
    return c->region(d->states[STK_JPEG], &job, dct || file);
}

/* ------------------------------------------------------------------ encoding */

int encode_pixels(const struct image *im, const stk_encode_options *o, void **out, size_t *n, stk_error *e)
{
    const struct codec *c = codec_of(o->format);
    if (o->format == STK_FORMAT_UNKNOWN || (unsigned)o->format >= N_FORMATS)
        return error_set(e, STK_EUSAGE, "encode", "no format to encode to was given; use JPEG, PNG or WebP");
    if (!c)
        return error_set(e, STK_EBUILD, "encode", "this build has no encoder for %s", format_name(o->format));
    if (im->w <= 0 || im->h <= 0 || (im->channels != 1 && im->channels != 3))
        return error_set(
            e, STK_EUSAGE, "encode",
            "cannot encode an image of %dx%d with %d channels; it needs at least one pixel, and 1 or 3 channels", im->w,
            im->h, im->channels);
    if (o->quality < 0 || o->quality > 100)
        return error_set(e, STK_EUSAGE, "encode", "quality is %d; it must be from 1 to 100", o->quality);
    return c->encode(im, o, out, n, e);
}
