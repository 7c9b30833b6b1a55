/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode.h -- from the bytes of an image to RGB pixels.
 *
 *     decode_head(bytes, n, &limits, &head, e)          reads only the first bytes: size, kind, orientation
 *     arena_reserve(a, decode_scratch(&head, &want))    memory, known in advance
 *     decode_pixels(d, bytes, n, &head, &want, a, &image, &warnings, e)
 *
 * The first bytes determine the format. The result is the wanted crop, upright, with 3 channels. It is bit for bit
 * Pillow's exif_transpose(Image.open(f)).convert("RGB"), with one exception: 16-bit grey is scaled, where Pillow
 * clips.
 */
#ifndef DECODE_H
#define DECODE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/sample.h"
#include "decode/dct_region.h"

struct decode_limits {
    int64_t max_pixels; /* 0: no limit */
    bool no_exif;
};

struct decoder; /* one thread's codecs, reused from image to image */

/* Uses the kernels for `cpu`; STK_CPU_DEFAULT: the best that the machine has. */
int decoder_new(struct decoder **out, stk_cpu cpu, stk_error *e);
void decoder_free(struct decoder *d); /* accepts NULL */

int decode_head(const uint8_t *bytes, size_t n, const struct decode_limits *limits, struct head *out, stk_error *e);
/* The largest want.shrink for this image: 8, or 1 if its format cannot be decoded smaller. */
int decode_shrink(const struct head *h);
/* Bytes of arena that decode_pixels takes; 0 only on overflow. */
size_t decode_scratch(const struct head *h, const struct want *w);
/* An upper estimate of the bytes that the codec's library takes from the heap meanwhile. */
size_t decode_foreign(const struct head *h, const struct want *w);
/* image->px points into the arena, and has the size of want->crop. *warnings counts problems in the data that the
 * codec could decode nevertheless. */
int decode_pixels(struct decoder *d, const uint8_t *bytes, size_t n, const struct head *h, const struct want *w,
                  struct arena *a, struct image *out, int *warnings, stk_error *e);

/*
 * A DCT image holds the coefficients of a JPEG without its Huffman codes. It decodes to the same pixels, bit for bit,
 * in a fraction of the time, and is about one and a half times as large. A DCT image of another version is refused. A
 * damaged one is refused or decodes to wrong pixels, so code that stores one must also store a checksum.
 */
/* Appends the DCT image of a whole JPEG. Returns false if it has none (another format, damaged, unusual), or if there
 * is no memory. Takes decode_foreign of the whole image, and no arena. */
bool decode_to_dct(struct decoder *d, const uint8_t *bytes, size_t n, const struct head *h, struct buf *out);
/* The head that decode_head returned for the JPEG. */
int decode_dct_head(const uint8_t *dct, size_t n, const struct decode_limits *limits, struct head *out, stk_error *e);
/* As decode_pixels. Takes decode_scratch, and nothing from the heap. */
int decode_dct_pixels(struct decoder *d, const uint8_t *dct, size_t n, const struct head *h, const struct want *w,
                      struct arena *a, struct image *out, stk_error *e);

/* The coefficients or codes that a crop takes, of a JPEG or (dct) of a DCT image, or the codes of a whole scan, as
 * out->coefficients, codes and scan ask. Returns false if they do not fit, or if decode_pixels must make the pixels:
 * another format, several scans, damaged, not upright, unusual. Uses checkpoints and makes new ones as decode_pixels
 * does. Takes no arena. */
bool decode_region(struct decoder *d, const uint8_t *bytes, size_t n, const struct head *h, const struct want *w,
                   bool dct, struct dct_region *out);

/* The same as a file of its own, with a checksum, which decode_head and decode_pixels accept as an image. */
bool decode_to_dct_file(struct decoder *d, const uint8_t *bytes, size_t n, const struct head *h, struct buf *out);
/* Appends such a file as a JPEG of one scan, with the same coefficients and orientation: it decodes to the same pixels.
 * Other markers of the original are lost. Takes decode_jpeg_foreign from the heap, and no arena. */
int decode_dct_file_to_jpeg(const uint8_t *bytes, size_t n, struct buf *out, stk_error *e);
size_t decode_jpeg_foreign(const struct head *h);

/* Appends a JPEG of several scans or with arithmetic codes as a JPEG that every decoder reads fast: one scan of
 * Huffman codes, with the same markers and the same coefficients, which are verified. Returns false if it is not
 * such a JPEG, is damaged, or there is no memory. Takes decode_foreign of the whole image twice, and no arena. */
bool decode_rewrite(struct decoder *d, const uint8_t *bytes, size_t n, const struct head *h, struct buf *out);

/*
 * Checkpoints let a later decode of the same file skip what comes before its crop. For a JPEG of one scan they are
 * positions in the scan (jpeg_checkpoints.h); for one of several scans they are its DCT image. The caller stores the
 * bytes under the file's size and modification time. Checkpoints that are damaged or of another file are ignored.
 */
/* Estimates the bytes of checkpoints of a file of n bytes. */
size_t decode_checkpoints_bytes(const struct head *h, size_t n);
/* Call before decode_pixels; valid for that image only. NULL: there are none yet, but they are wanted. complete: makes
 * the missing ones down to the end of the file, which takes as long as reading all Huffman codes there. */
void decoder_lend_checkpoints(struct decoder *d, const void *checkpoints, size_t n, bool complete);
/* Call instead of decode_pixels, if the image is not decoded after all. */
void decoder_drop_checkpoints(struct decoder *d);
/* Call after decode_pixels: the checkpoints to store from now on, valid until the next image; NULL: nothing new. */
const void *decoder_new_checkpoints(const struct decoder *d, size_t *n);

/*
 * Before a file is read, from its checkpoints alone: its head, and the ranges of it that decode_pixels reads for `w`
 * with the same checkpoints lent. Ranges less than `apart` bytes apart are joined. Returns false if the checkpoints do
 * not say, or if the whole file is needed. If the ranges turn out not to be enough (want.ranges: the file has changed
 * or is damaged), decode_pixels fails. That is not a verdict on the file: read all of it and decode again.
 */
bool decode_checkpoint_head(const void *checkpoints, size_t n, const struct decode_limits *limits, struct head *out);
bool decode_checkpoint_ranges(const void *checkpoints, size_t n, const struct head *h, const struct want *w,
                              size_t apart, struct ranges *out);

/* Encodes, for synth, show and pack. *out comes from malloc. */
int encode_pixels(const struct image *im, const stk_encode_options *o, void **out, size_t *n, stk_error *e);

/* Version of the library; NULL: not built in. */
const char *decode_version(stk_format f);
const char *format_name(stk_format f); /* "JPEG", "PNG", "WebP", "unknown" */

#endif
