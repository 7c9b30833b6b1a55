/* SPDX-License-Identifier: Apache-2.0 */
/*
 * voc.c -- reads annotations in Pascal VOC's format.
 *
 * Elements are compared by their whole path, so that the parts of an object, which have names and boxes too, are not
 * taken for the object. Other elements and all attributes are skipped.
 */
#include "format/voc.h"

#include <math.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"

#define COORDINATE_MOST 1e9 /* floats can hold it */

static bool fail(struct voc *v, const char *problem)
{
    if (!v->problem)
        v->problem = problem;
    return false;
}

static bool starts(const struct voc *v, const char *word)
{
    const size_t n = strlen(word);
    return (size_t)(v->end - v->p) >= n && memcmp(v->p, word, n) == 0;
}

/* Moves behind the next occurrence of a word. */
static bool skip_past(struct voc *v, const char *word)
{
    const size_t n = strlen(word);
    for (; (size_t)(v->end - v->p) >= n; v->p++)
        if (memcmp(v->p, word, n) == 0) {
            v->p += n;
            return true;
        }
    return fail(v, "the file ends in the middle of an element");
}

/* ------------------------------------------------------------------ text */

static struct slice trim(struct slice s)
{
    while (s.n > 0 && text_is_space(s.p[s.n - 1]))
        s.n--;
    for (; s.n > 0 && text_is_space(*s.p); s.n--)
        s.p++;
    return s;
}

/* The character of a reference, "&#233;" or "&#xe9;", as UTF-8; 0: it is invalid. */
static size_t put_character(char *to, const char *digits, size_t n)
{
    const bool hex = n > 0 && (*digits | 0x20) == 'x';
    uint32_t c = 0;
    for (size_t i = hex; i < n; i++) {
        const char d = (char)(digits[i] | 0x20);
        const uint32_t value = d >= '0' && d <= '9'          ? (uint32_t)(d - '0')
                               : hex && d >= 'a' && d <= 'f' ? (uint32_t)(d - 'a' + 10)
                                                             : 99;
        c = c * (hex ? 16 : 10) + value;
        if (value == 99 || c > 0x10ffff)
            return 0;
    }
    if (c == 0 || (c >= 0xd800 && c < 0xe000))
        return 0;
    if (c < 0x80)
        return *to = (char)c, 1;
    const size_t bytes = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = bytes - 1; i > 0; i--, c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)(first[bytes] | c);
    return bytes;
}

/* Replaces the predefined entities and references to characters, in place: none is shorter than its character. */
static bool unescape(struct voc *v, struct slice *s)
{
    static const struct {
        const char *name;
        char c;
    } entities[] = {{"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};
    char *to = s->p;
    const char *const end = s->p + s->n;
    for (const char *p = s->p; p < end;) {
        if (*p != '&') {
            *to++ = *p++;
            continue;
        }
        const char *stop = memchr(p, ';', (size_t)(end - p));
        const size_t n = stop ? (size_t)(stop - p) - 1 : 0;
        size_t put = n > 1 && p[1] == '#' ? put_character(to, p + 2, n - 1) : 0;
        for (size_t i = 0; i < sizeof entities / sizeof entities[0] && !put; i++)
            if (n == strlen(entities[i].name) && memcmp(p + 1, entities[i].name, n) == 0) {
                *to = entities[i].c;
                put = 1;
            }
        if (!put)
            return fail(v, "an unknown entity");
        to += put;
        p = stop + 1;
    }
    s->n = (size_t)(to - s->p);
    return true;
}

/* ------------------------------------------------------------------ elements */

static bool is_at(const struct voc *v, int depth, const char *last)
{
    return v->depth == depth && strcmp(v->path[1], "object") == 0 && strcmp(v->path[depth - 1], last) == 0;
}

static bool take_number(struct voc *v, struct slice text, double *out)
{
    struct number n;
    if (text.n == 0 || number_read(text.p, text.n, &n) != text.n || !isfinite(n.d))
        return fail(v, "a side of its box is not a finite number");
    if (fabs(n.d) > COORDINATE_MOST)
        return fail(v, "its box is far outside the image");
    *out = n.d;
    return true;
}

/* An element of an object is closed. */
static bool take_value(struct voc *v)
{
    static const char *const sides[] = {"xmin", "ymin", "xmax", "ymax"};
    struct slice text = trim(v->text);
    const bool on = text.n == 1 && *text.p == '1';
    for (int i = 0; i < 4; i++)
        if (is_at(v, 4, sides[i]) && strcmp(v->path[2], "bndbox") == 0) {
            v->seen |= 1u << i;
            return take_number(v, text, &v->object.box[i]);
        }
    if (is_at(v, 3, "name")) {
        v->seen |= 16;
        v->object.name = text;
        return unescape(v, &v->object.name);
    }
    v->object.difficult |= on && is_at(v, 3, "difficult");
    v->object.truncated |= on && is_at(v, 3, "truncated");
    return true;
}

static bool check_object(struct voc *v)
{
    const double *b = v->object.box;
    if (!(v->seen & 16) || v->object.name.n == 0)
        return fail(v, "it has no name");
    if ((v->seen & 15) != 15)
        return fail(v, "its box has fewer than 4 sides");
    return b[2] < b[0] || b[3] < b[1] ? fail(v, "its box has a negative width or height") : true;
}

static bool open_element(struct voc *v, const char *name, size_t n)
{
    if (v->depth == VOC_DEPTH)
        return fail(v, "elements are nested more than 16 deep");
    if (v->ended)
        return fail(v, "there is more than one root element");
    char *const to = v->path[v->depth++];
    const size_t kept = n < VOC_NAME ? n : VOC_NAME - 1; /* no name that is looked for is longer */
    memcpy(to, name, kept);
    to[kept] = 0;
    if (v->depth == 1 && strcmp(to, "annotation") != 0)
        return fail(v, "the root element is not <annotation>");
    if (v->depth == 2 && strcmp(to, "object") == 0) {
        v->object = (struct voc_object){0};
        v->seen = 0;
        v->n_objects++;
    }
    v->text = (struct slice){v->p, 0};
    return true;
}

/* Returns whether this was an object. */
static bool close_element(struct voc *v, const char *name, size_t n)
{
    const size_t kept = n < VOC_NAME ? n : VOC_NAME - 1;
    if (v->depth == 0 || strlen(v->path[v->depth - 1]) != kept || memcmp(v->path[v->depth - 1], name, kept) != 0)
        return fail(v, "a closing tag does not match the last opening tag");
    const bool object = v->depth == 2 && strcmp(v->path[1], "object") == 0;
    if (v->depth > 2)
        take_value(v);
    v->depth--;
    v->ended = v->depth == 0;
    v->text = (struct slice){v->p, 0};
    return object && !v->problem && check_object(v);
}

/* Reads the tag at v->p. Returns whether it closes an object. */
static bool read_tag(struct voc *v)
{
    const bool closes = v->p + 1 < v->end && v->p[1] == '/';
    const char *const name = v->p + 1 + closes;
    char quote = 0;
    for (; v->p < v->end && (quote || *v->p != '>'); v->p++)
        if (quote ? *v->p == quote : *v->p == '"' || *v->p == '\'')
            quote = quote ? 0 : *v->p;
    if (v->p == v->end)
        return fail(v, "the file ends in the middle of an element");
    const bool empty = v->p[-1] == '/' && !closes;
    const char *stop = name;
    while (stop < v->p && !text_is_space(*stop) && *stop != '/')
        stop++;
    v->p++;
    const size_t n = (size_t)(stop - name);
    if (n == 0)
        return fail(v, "an element has no name");
    if (closes)
        return close_element(v, name, n);
    return open_element(v, name, n) && empty && close_element(v, name, n);
}

bool voc_next(struct voc *v, struct voc_object *out)
{
    while (!v->problem) {
        char *const from = v->p;
        while (v->p < v->end && *v->p != '<') {
            if (v->depth == 0 && !text_is_space(*v->p) && (uint8_t)*v->p < 0x80)
                return fail(v, "it is not XML");
            v->p++;
        }
        v->text = (struct slice){from, (size_t)(v->p - from)};
        if (v->p == v->end)
            return v->ended ? false : fail(v, "the file ends before its root element is closed");
        if (starts(v, "<!--")) {
            if (!skip_past(v, "-->"))
                return false;
        } else if (starts(v, "<?")) {
            if (!skip_past(v, "?>"))
                return false;
        } else if (starts(v, "<!")) {
            return fail(v, "it has declarations (<!DOCTYPE, <![CDATA[), which are not read");
        } else if (read_tag(v)) {
            *out = v->object;
            return true;
        }
    }
    return false;
}
