/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode_webp.c -- WebP through libwebp.
 *
 * As in Pillow, the demultiplexer judges the container: a file that is shorter than it says is refused. Of an animation
 * only the first frame is decoded. If it does not cover the canvas, the rest is black. Alpha is dropped.
 *
 * libwebp crops while it decodes, and stops after the crop. But at the edges of the crop it upsamples chroma without
 * neighbours, and it moves the crop's corner to even positions. So a margin is decoded on every side.
 */
#include "decode/codec.h"

#ifdef HAVE_WEBP

#include <stdlib.h>
#include <string.h>

#include <webp/decode.h>
#include <webp/demux.h>
#include <webp/encode.h>

#include "base/bytes.h"
#include "base/error.h"
#include "decode/exif.h"

static const char stage[] = "decode";

enum {
    MARGIN = 4,                 /* even, and at least one chroma sample */
    FOREIGN_FIXED = 256 * 1024, /* bit readers, quantisers, the chunk list */
    FOREIGN_COLUMN = 256,       /* rows of macroblocks of a lossy image */
    TABLE_BYTES = 12 * 1024,    /* of one group of Huffman tables of a lossless image */
    TABLES = 2600,              /* groups that an encoder makes, at most */
};

static bool webp_match(const uint8_t *p, size_t n)
{
    return n >= 16 && memcmp(p, "RIFF", 4) == 0 && memcmp(p + 8, "WEBP", 4) == 0 &&
           (memcmp(p + 12, "VP8 ", 4) == 0 || memcmp(p + 12, "VP8L", 4) == 0 || memcmp(p + 12, "VP8X", 4) == 0);
}

/* ------------------------------------------------------------------ head */

static WebPDemuxer *demux(const uint8_t *bytes, size_t n, stk_error *e)
{
    const WebPData data = {bytes, n};
    WebPDemuxer *d = WebPDemux(&data);
    if (d)
        return d;
    const uint64_t promised = (uint64_t)le32(bytes + 4) + 8;
    if (n < promised)
        error_set(e, STK_EDATA, stage, "the file ends after %zu bytes of %llu", n, (unsigned long long)promised);
    else
        error_set(e, STK_EDATA, stage, "broken WebP: its chunks do not form an image");
    return NULL;
}

/* Finds the first frame in the file, and its position on the canvas. */
static bool first_frame(WebPDemuxer *d, WebPIterator *it)
{
    return WebPDemuxGetFrame(d, 1, it) && it->complete;
}

static bool is_lossless(WebPDemuxer *d)
{
    WebPIterator it;
    WebPBitstreamFeatures f = {0};
    const bool known = first_frame(d, &it) && WebPGetFeatures(it.fragment.bytes, it.fragment.size, &f) == VP8_STATUS_OK;
    WebPDemuxReleaseIterator(&it);
    return known && f.format == 2;
}

static void find_chunk(const WebPDemuxer *d, const char *name, const uint8_t **p, size_t *n)
{
    WebPChunkIterator it;
    if (!WebPDemuxGetChunk(d, name, 1, &it))
        return;
    *p = it.chunk.bytes;
    *n = it.chunk.size;
    WebPDemuxReleaseChunkIterator(&it);
}

static int webp_head(const uint8_t *bytes, size_t n, struct head *h, stk_error *e)
{
    WebPDemuxer *d = demux(bytes, n, e);
    if (!d)
        return STK_EDATA;
    const uint32_t flags = WebPDemuxGetI(d, WEBP_FF_FORMAT_FLAGS);
    h->w = (int32_t)WebPDemuxGetI(d, WEBP_FF_CANVAS_WIDTH);
    h->h = (int32_t)WebPDemuxGetI(d, WEBP_FF_CANVAS_HEIGHT);
    h->bits = 8;
    h->channels = flags & ALPHA_FLAG ? 4 : 3;
    h->odd = (flags & ALPHA_FLAG ? STK_ODD_ALPHA : 0u) | (flags & ICCP_FLAG ? STK_ODD_ICC : 0u) |
             (WebPDemuxGetI(d, WEBP_FF_FRAME_COUNT) > 1 ? STK_ODD_ANIMATED : 0u) | (is_lossless(d) ? CODEC_HELD : 0u);
    struct exif x = {0};
    find_chunk(d, "EXIF", &x.tiff, &x.tiff_bytes);
    find_chunk(d, "XMP ", &x.xmp, &x.xmp_bytes);
    h->orientation = exif_orientation(&x);
    WebPDemuxDelete(d);
    return STK_OK;
}

/* ------------------------------------------------------------------ pixels */

static int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static int32_t most(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

/* The crop with its margin, within the image, at even positions. whole: down to the last row, which libwebp decodes
 * after all others. */
static struct rect widen(const struct head *h, const struct rect *crop, bool whole)
{
    struct rect r = {most(crop->x - MARGIN, 0) & ~1, most(crop->y - MARGIN, 0) & ~1, 0, 0};
    r.w = least(crop->x + crop->w + MARGIN, h->w) - r.x;
    r.h = (whole ? h->h : least(crop->y + crop->h + MARGIN, h->h)) - r.y;
    return r;
}

static size_t webp_scratch(const struct head *h, const struct rect *crop, bool whole)
{
    const struct rect r = widen(h, crop, whole);
    return arena_cost(rgb_bytes(r.w, r.h));
}

/* Lossless images, and the alpha of others, are held in memory: 4 bytes per pixel, planes, transforms. */
static size_t webp_foreign(const struct head *h, const struct rect *crop, bool whole)
{
    (void)crop;
    (void)whole;
    const size_t pixels = size_mul((size_t)h->w, (size_t)h->h);
    size_t n = FOREIGN_FIXED + FOREIGN_COLUMN * (size_t)h->w;
    if (h->odd & (CODEC_HELD | STK_ODD_ALPHA))
        n = size_add(n, size_mul(pixels, 7));
    if (h->odd & CODEC_HELD)
        n += (pixels / 16 < TABLES ? pixels / 16 : TABLES) * TABLE_BYTES;
    return n;
}

static int explain(VP8StatusCode code, size_t n, stk_error *e)
{
    switch (code) {
    case VP8_STATUS_OUT_OF_MEMORY:
        return error_set(e, STK_ENOMEM, stage, "no memory for libwebp");
    case VP8_STATUS_SUSPENDED:
    case VP8_STATUS_NOT_ENOUGH_DATA:
        return error_set(e, STK_EDATA, stage, "its data ends before its last row (the file has %zu bytes)", n);
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return error_set(e, STK_EDATA, stage, "uses a feature of WebP that libwebp does not support");
    default:
        return error_set(e, STK_EDATA, stage, "broken WebP: its data cannot be decoded");
    }
}

static struct rect common(const struct rect *a, const struct rect *b)
{
    struct rect r = {most(a->x, b->x), most(a->y, b->y), 0, 0};
    r.w = least(a->x + a->w, b->x + b->w) - r.x;
    r.h = least(a->y + a->h, b->y + b->h) - r.y;
    return r;
}

/* Decodes the part of `area` that the frame covers into px. All coordinates are those of the canvas. */
static int decode_frame(const WebPIterator *it, const struct rect *area, uint8_t *px, const struct image_job *job,
                        stk_error *e)
{
    const struct rect frame = {it->x_offset, it->y_offset, it->width, it->height};
    const struct rect part = common(&frame, area);
    const size_t stride = (size_t)area->w * 3;
    if (part.w != area->w || part.h != area->h)
        memset(px, 0, stride * (size_t)area->h);
    if (part.w <= 0 || part.h <= 0)
        return STK_OK;
    WebPDecoderConfig c;
    if (!WebPInitDecoderConfig(&c))
        return error_set(e, STK_EBUILD, stage,
                         "libwebp has another version than the one Stoker was built with; rebuild Stoker");
    c.options.use_cropping = 1;
    c.options.crop_left = part.x - frame.x;
    c.options.crop_top = part.y - frame.y;
    c.options.crop_width = part.w;
    c.options.crop_height = part.h;
    c.output.colorspace = MODE_RGB;
    c.output.is_external_memory = 1;
    c.output.u.RGBA.rgba = px + stride * (size_t)(part.y - area->y) + (size_t)(part.x - area->x) * 3;
    c.output.u.RGBA.stride = (int)stride;
    c.output.u.RGBA.size = stride * (size_t)(part.h - 1) + (size_t)part.w * 3;
    const VP8StatusCode code = WebPDecode(it->fragment.bytes, it->fragment.size, &c);
    WebPFreeDecBuffer(&c.output);
    return code == VP8_STATUS_OK ? STK_OK : explain(code, job->n, e);
}

static int decode_into(WebPDemuxer *d, const struct rect *area, uint8_t *px, const struct image_job *job, stk_error *e)
{
    WebPIterator it;
    int rc;
    if (first_frame(d, &it))
        rc = decode_frame(&it, area, px, job, e);
    else
        rc = error_set(e, STK_EDATA, stage, "broken WebP: it has no frame");
    WebPDemuxReleaseIterator(&it);
    return rc;
}

static int webp_pixels(void *state, const struct image_job *job, struct image *out, int *warnings, stk_error *e)
{
    (void)state;
    *warnings = 0;
    const struct rect area = widen(job->head, &job->crop, job->whole);
    uint8_t *px = arena_alloc(job->arena, rgb_bytes(area.w, area.h));
    if (!px)
        return codec_no_arena(e);
    WebPDemuxer *d = demux(job->bytes, job->n, e);
    if (!d)
        return STK_EDATA;
    const int rc = decode_into(d, &area, px, job, e);
    WebPDemuxDelete(d);
    const size_t stride = (size_t)area.w * 3;
    const struct rect *crop = &job->crop;
    *out = (struct image){.px = px + stride * (size_t)(crop->y - area.y) + (size_t)(crop->x - area.x) * 3,
                          .stride = stride,
                          .w = crop->w,
                          .h = crop->h,
                          .channels = 3};
    return rc;
}

/* ------------------------------------------------------------------ encoding */

/* libwebp does not accept grey. */
static int import(WebPPicture *pic, const struct image *im)
{
    if (im->channels == 3)
        return WebPPictureImportRGB(pic, im->px, (int)im->stride);
    uint8_t *rgb = malloc(rgb_bytes(im->w, im->h));
    if (!rgb)
        return 0;
    for (int32_t y = 0; y < im->h; y++)
        for (int32_t x = 0; x < im->w; x++)
            memset(rgb + ((size_t)y * (size_t)im->w + (size_t)x) * 3, im->px[(size_t)y * im->stride + (size_t)x], 3);
    const int ok = WebPPictureImportRGB(pic, rgb, im->w * 3);
    free(rgb);
    return ok;
}

static int write_pixels(WebPPicture *pic, const WebPConfig *config, const struct image *im, stk_error *e)
{
    if (im->w > WEBP_MAX_DIMENSION || im->h > WEBP_MAX_DIMENSION)
        return error_set(e, STK_EUSAGE, "encode",
                         "a side of a WebP image has at most %d pixels, but this image is %dx%d; use JPEG or PNG",
                         WEBP_MAX_DIMENSION, im->w, im->h);
    if (!import(pic, im))
        return error_nomem(e, "encode", rgb_bytes(im->w, im->h));
    if (!WebPEncode(config, pic))
        return error_set(e, pic->error_code == VP8_ENC_ERROR_BAD_DIMENSION ? STK_EUSAGE : STK_ENOMEM, "encode",
                         "WebP: libwebp failed with error %d", (int)pic->error_code);
    return STK_OK;
}

static int webp_encode(const struct image *im, const stk_encode_options *o, void **out, size_t *n, stk_error *e)
{
    WebPConfig config;
    WebPPicture pic;
    if (!WebPConfigInit(&config) || !WebPPictureInit(&pic))
        return error_set(e, STK_EBUILD, "encode",
                         "libwebp has another version than the one Stoker was built with; rebuild Stoker");
    config.quality = (float)(o->quality ? o->quality : 90);
    config.lossless = o->lossless != 0;
    WebPMemoryWriter writer;
    WebPMemoryWriterInit(&writer);
    pic.use_argb = config.lossless;
    pic.width = im->w;
    pic.height = im->h;
    pic.writer = WebPMemoryWrite;
    pic.custom_ptr = &writer;
    int rc = write_pixels(&pic, &config, im, e);
    WebPPictureFree(&pic);
    void *copy = rc == STK_OK ? malloc(writer.size) : NULL;
    if (copy) {
        memcpy(copy, writer.mem, writer.size);
        *out = copy;
        *n = writer.size;
    } else if (rc == STK_OK) {
        rc = error_nomem(e, "encode", writer.size);
    }
    WebPMemoryWriterClear(&writer);
    return rc;
}

/* libwebp's headers do not contain its version; the build passes it. */
#ifndef WEBP_VERSION
#define WEBP_VERSION "(version unknown)"
#endif

static const char *webp_version(void)
{
    return "libwebp " WEBP_VERSION;
}

const struct codec codec_webp = {
    .format = STK_WEBP,
    .match = webp_match,
    .head = webp_head,
    .scratch = webp_scratch,
    .foreign = webp_foreign,
    .pixels = webp_pixels,
    .encode = webp_encode,
    .version = webp_version,
};

#endif
