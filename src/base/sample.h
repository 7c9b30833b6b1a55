/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample.h -- the data that stages hand to each other.
 */
#ifndef SAMPLE_H
#define SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stoker.h"

struct rect {
    int32_t x, y, w, h;
};

/* 8-bit pixels, interleaved, 1 or 3 channels. Kernels may read up to IMAGE_SLACK bytes past the last pixel, so
 * these bytes must be readable (arena_alloc() provides them). */
enum { IMAGE_SLACK = 64 };

struct image {
    uint8_t *px;
    size_t stride; /* bytes from row to row */
    int32_t w, h, channels;
};

/* What the header of an image says. */
struct head {
    stk_format format;
    int32_t w, h;       /* as stored */
    int channels, bits; /* as stored */
    int orientation;    /* EXIF, 1 to 8; 1 if EXIF is to be ignored */
    unsigned odd;       /* STK_ODD_* */
    bool dct;           /* a JPEG without its Huffman codes (decode/dct_image.h) */
};

struct byte_range {
    uint64_t from, to;
};

/* Ranges of a file, ascending. */
enum { RANGES_MAX = 8 };

struct ranges {
    int n;
    struct byte_range at[RANGES_MAX];
};

/* The location of a sample in a larger file. */
struct extent {
    int fd;           /* stays open as long as the source; -1: open `path` */
    const char *path; /* valid as long as the source */
    int64_t at;
    size_t bytes;
    bool direct; /* the descriptor has O_DIRECT, or the file is to be opened with it */
};

/* What the transform needs of an image, in the coordinates of the upright image (EXIF applied). */
struct want {
    struct rect crop;
    int shrink;     /* 2, 4 or 8: decode at 1/shrink of the size, sides rounded up; crop refers to the smaller image */
    bool whole;     /* decode to the end of the file even if the crop ends above it: for verify */
    bool reference; /* decode with the format's library only: tests compare our own decoders with it */
    bool indices;   /* of a PNG with one channel: stored numbers, not colours, in 1 byte, or in 2 if it has 16 bits */
    const struct ranges *ranges; /* of the file that were read; bytes between them are undefined. NULL: all of it */
};

/* The size of the upright image. */
static inline int32_t head_width(const struct head *h)
{
    return h->orientation > 4 ? h->h : h->w;
}
static inline int32_t head_height(const struct head *h)
{
    return h->orientation > 4 ? h->w : h->h;
}

/* The boxes of an image as left, top, right and bottom, in pixels from its corner. */
struct boxes {
    int n;
    const float (*at)[4];
    bool whole; /* all of their numbers are whole */
};

/* The key of the random numbers of a sample; rng_init() adds the op. */
struct draw {
    uint64_t seed, epoch, sample, repeat, view;
    const struct boxes *boxes; /* for RandomIoUCrop; NULL: the sample has none */
    int crop;                  /* which one of FiveCrop and TenCrop; does not change the random numbers */
};

/* FIELD_NAME, COLUMN_NAME: bytes of the name of a field and of a column in a container, with the 0 at the end. */
enum { FIELD_MAX = 64, FIELD_DIMS = 8, FIELD_NAME = 64, COLUMN_NAME = 1024 };

/* One field of a sample, as a source has it. */
enum field_kind {
    FIELD_ENCODED, /* an encoded image, to be decoded */
    FIELD_PIXELS,  /* uint8 rows x columns x channels, to be transformed */
    FIELD_TENSOR,  /* of a fixed shape */
    FIELD_RAGGED,  /* the number of elements differs between samples: numbers, text, bytes */
    FIELD_OFFSETS, /* in batches only: where each row of a ragged field starts, and where the last one ends */
    FIELD_OPEN     /* in batches of one row only: pixels whose shape is not known before they are transformed */
};

/* How a field follows the image through the ops. */
enum follow {
    FOLLOW_NONE,
    FOLLOW_MASK,   /* one integer for every pixel: an encoded image without colours, or numbers of two dimensions */
    FOLLOW_MASKS,  /* numbers (n, h, w): one mask for each of n boxes */
    FOLLOW_BOXES,  /* numbers (n, 4) */
    FOLLOW_POINTS, /* numbers (n, k, 2 or 3) or (k, 2 or 3) */
    FOLLOW_EACH    /* numbers (n, ...): one entry for each of n boxes */
};

enum box_format { BOX_XYXY, BOX_XYWH, BOX_CXCYWH };

struct field {
    char name[FIELD_NAME + 8]; /* with room for ".offsets" */
    enum field_kind kind;
    stk_dtype dtype;
    int ndim;                  /* of one sample */
    int64_t shape[FIELD_DIMS]; /* of one sample; rows, columns, channels for pixels */
    size_t bytes;              /* of one sample; encoded: 0; ragged: of one element; open: of one pixel */
    stk_kind what;             /* what the user sees: ragged uint8 may be text, bytes or JSON */
    int column;      /* of the source, if it is read into a cell; -1: the source copies it, or it is the label */
    bool label;      /* the label that the source knows without reading */
    bool named;      /* class indices */
    bool words;      /* words that the source converts to class indices */
    bool pad;        /* ragged: rows are padded to the longest, with lengths; false: values and offsets */
    int frame;       /* ragged pixels: 1 + the dimension of rows that is the height, before the width; 0: not pixels.
                        If they are padded, both are, with sizes */
    int beside;      /* in a batch: the index of its offsets or lengths; its shapes follow them */
    int copies;      /* in a batch: of a field that follows several views, ragged rows per sample; 0: one */
    bool text;       /* the source has these numbers as text, and marks its cells so */
    bool has_fill;   /* a sample without a value gets `fill` */
    uint8_t fill[8]; /* one element; also for padding */
    /* A field that follows the image is FIELD_RAGGED in its source, which reads it into a cell. */
    enum follow follow;
    enum box_format box_format; /* of the stored boxes */
    bool relative;              /* boxes and points: stored as shares of the image's width and height */
    bool file;                  /* mask: stored as the path of a file */
    stk_dtype mask_dtype;       /* of a mask in batches; 0: uint8, or int32 if the source has more than 8 bits */
};

/* What a source has read for a field, valid until the next read: bytes as stored, or numbers of a type in C order and
 * in this machine's byte order. */
struct cell {
    const uint8_t *bytes; /* NULL: the sample has no value */
    size_t n;             /* bytes */
    stk_dtype dtype;      /* of the numbers; 0: bytes, text, an encoded image */
    bool text;            /* the bytes are text: numbers must be parsed from it */
    int ndim;             /* of the numbers; if shape[0] is -1, it follows from the number of bytes */
    int64_t shape[FIELD_DIMS];
};

/* Sets name, type and shape of one sample as the user describes them; leaves f->kind. */
int field_of(struct field *f, const stk_array *a, stk_error *e);
/* Whether more dimensions than the first may differ between rows. Such a field is stored flat, with a shape per row. */
bool field_is_flat(const struct field *f);

/* One row of a ragged field. The memory is reused for the next row. */
struct ragged_row {
    uint8_t *data;
    size_t n, cap;             /* bytes */
    int64_t shape[FIELD_DIMS]; /* of the row */
};

/* Copies a row. If from is NULL, makes it empty. 0, or -1: no memory. */
int ragged_row_copy(struct ragged_row *to, const struct ragged_row *from);
/* Makes room for n bytes. 0, or -1: no memory. */
int ragged_row_reserve(struct ragged_row *p, size_t n);
void ragged_row_done(struct ragged_row *p);

size_t dtype_bytes(stk_dtype t); /* 0: not a type */
const char *dtype_name(stk_dtype t);
int64_t dtype_integer(stk_dtype t, const void *p); /* an integer of this type, as int64 */

#endif
