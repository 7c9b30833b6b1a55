/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode.h -- from the bytes of a picture to RGB pixels.
 *
 *     decode_head(bytes, n, &limits, &head, e)          first bytes only: size, kind, orientation
 *     arena_reserve(a, decode_scratch(&head, &want))    what it will take, known beforehand
 *     decode_pixels(d, bytes, n, &head, &want, a, &image, e)
 *
 * The format is found by the first bytes. The result is always 3 channels, upright, exactly the
 * wanted crop, and equal to Pillow's exif_transpose(Image.open(f)).convert("RGB") bit for bit
 * (exceptions: 16-bit grey is scaled, where Pillow clips).
 */
#ifndef DECODE_H
#define DECODE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/sample.h"

struct decode_limits {
    int64_t max_pixels; /* 0: no limit */
    bool no_exif;
};

struct decoder; /* one thread's codecs, reused from picture to picture */

/* With the kernels of this CPU; STK_CPU_DEFAULT: the best that the machine has. */
int decoder_new(struct decoder **out, stk_cpu cpu, stk_error *e);
void decoder_free(struct decoder *d); /* also NULL */

int decode_head(const uint8_t *bytes, size_t n, const struct decode_limits *limits, struct head *out, stk_error *e);
/* The most by which a picture may come smaller (want.shrink): 8, or 1 when its format knows no such thing. */
int decode_shrink(const struct head *h);
/* Bytes of arena that decode_pixels takes; 0 only when it overflows. */
size_t decode_scratch(const struct head *h, const struct want *w);
/* Bytes that the codec's own library will take from the heap meanwhile (an estimate, not too low). */
size_t decode_foreign(const struct head *h, const struct want *w);
/* image->px points into the arena (w x h of want->crop). *warnings counts complaints of the codec
 * about data that it could nevertheless decode. */
int decode_pixels(struct decoder *d, const uint8_t *bytes, size_t n, const struct head *h, const struct want *w,
                  struct arena *a, struct image *out, int *warnings, stk_error *e);

/*
 * A DCT image holds what a JPEG's codes say without the codes: decoding it takes a fraction of the time and gives the
 * same pixels, bit for bit; it is about one and a half times as large. For caches: one of another version is refused, a
 * damaged one refused or decoded wrongly, so that its bytes need a checksum.
 */
/* Of a whole picture, behind what out holds. false: this one has no DCT image (another format, damaged, unusual), or
 * there was no memory. Takes decode_foreign of the whole picture, and no arena. */
bool decode_to_dct(struct decoder *d, const uint8_t *bytes, size_t n, const struct head *h, struct buf *out);
/* The head that decode_head gave for the picture. */
int decode_dct_head(const uint8_t *dct, size_t n, const struct decode_limits *limits, struct head *out, stk_error *e);
/* As decode_pixels, with decode_scratch and nothing from the heap. */
int decode_dct_pixels(struct decoder *d, const uint8_t *dct, size_t n, const struct head *h, const struct want *w,
                      struct arena *a, struct image *out, stk_error *e);

/* The DCT image as a file of its own, which decode_head and decode_pixels take for a picture. */
bool decode_to_dct_file(struct decoder *d, const uint8_t *bytes, size_t n, const struct head *h, struct buf *out);

/* A JPEG of several scans, or of arithmetic codes, as one that every decoder reads quickly: one scan of Huffman codes,
 * with the same coefficients, which is proved, and the same markers. Behind what out holds; false: it is none, is
 * damaged, or there was no memory. Takes decode_foreign of the whole picture twice, and no arena. */
bool decode_rewrite(struct decoder *d, const uint8_t *bytes, size_t n, const struct head *h, struct buf *out);

/*
 * Checkpoints: what a decoder can keep of a file to find its way in it sooner the next time (of JPEG, checkpoints: a
 * later crop is decoded without what lies before it; or, where there are several scans, a DCT image). Bytes to be kept
 * by whoever can tell the file again, by its size and time of change. Checkpoints that are damaged or another file's
 * are not used.
 */
/* About how many bytes the checkpoints on a file of n bytes take. */
size_t decode_checkpoints_bytes(const struct head *h, size_t n);
/* Before decode_pixels, for that picture only; NULL: there are none yet, but they are wanted. */
void decoder_lend_checkpoints(struct decoder *d, const void *checkpoints, size_t n);
/* In its place: the picture is not decoded after all. */
void decoder_drop_checkpoints(struct decoder *d);
/* After it: what to keep from now on, until the next picture is decoded; NULL: nothing new. */
const void *decoder_new_checkpoints(const struct decoder *d, size_t *n);

/*
 * Before the file is read, from the checkpoints on it alone: its head, and which parts of it decode_pixels will take
 * for a want, with the same checkpoints lent; those that lie less than `apart` bytes apart are one. false: they do not
 * say, or it takes all of it. Where parts will not do after all (want.parts: the file is another one, or damaged)
 * decode_pixels fails, which is no verdict: all of it is to be read.
 */
bool decode_checkpoint_head(const void *checkpoints, size_t n, const struct decode_limits *limits, struct head *out);
bool decode_checkpoint_parts(const void *checkpoints, size_t n, const struct head *h, const struct want *w,
                             size_t apart, struct parts *out);

/* Encoding, for synth, show and pack. *out comes from malloc. */
int encode_pixels(const struct image *im, const stk_encode_options *o, void **out, size_t *n, stk_error *e);

/* Versions of the libraries; NULL when not built in. */
const char *decode_version(stk_format f);
const char *format_name(stk_format f); /* "JPEG", "PNG", "WebP", "unknown" */

#endif
