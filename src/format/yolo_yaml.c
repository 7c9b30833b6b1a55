/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yolo_yaml.c -- reads what a data.yaml says about a dataset: folders, names, keypoints.
 *
 * This is the part of YAML that such files use: keys at the start of a line, scalars with and without quotes, lists and
 * maps on one line or indented below.
 */
#include <stdlib.h>
#include <string.h>

#include "format/yolo.h"

const char YOLO_NO_MEMORY[] = "out of memory";

struct yaml {
    const char *p, *end;
    const char *problem;
};

static struct slice trim(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\r'))
        p++;
    while (p < end && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
        end--;
    return (struct slice){(char *)p, (size_t)(end - p)};
}

/* The end of a scalar: at a stop character outside of quotes, or at a comment. */
static const char *scalar_end(const char *p, const char *end, const char *stops)
{
    char quote = 0;
    for (const char *q = p; q < end; q++) {
        if (quote && *q == quote)
            quote = 0;
        else if (!quote && (*q == '"' || *q == '\'') && trim(p, q).n == 0)
            quote = *q;
        else if (!quote && (strchr(stops, *q) || (*q == '#' && (q == p || q[-1] == ' '))))
            return q;
    }
    return end;
}

static struct slice unquote(struct slice s)
{
    const bool quoted = s.n >= 2 && (*s.p == '"' || *s.p == '\'') && s.p[s.n - 1] == *s.p;
    return quoted ? (struct slice){s.p + 1, s.n - 2} : s;
}

static const char *line_end(const struct yaml *y, const char *p)
{
    const char *end = memchr(p, '\n', (size_t)(y->end - p));
    return end ? end : y->end;
}

static const char *add_name(struct yolo_yaml *out, struct slice name)
{
    uint32_t ignored;
    const struct slice text = unquote(name);
    if (text.n == 0 || memchr(text.p, 0, text.n))
        return "a name is empty";
    const int added = names_add(&out->names, text.p, text.n, &ignored);
    return added < 0 ? YOLO_NO_MEMORY : added == 0 ? "a name appears twice" : NULL;
}

/* An entry "3: cat" must come in its place. */
static const char *add_entry(struct yolo_yaml *out, struct slice entry)
{
    const size_t digits = strspn(entry.p, "0123456789");
    if (digits == 0 || digits >= entry.n || entry.p[digits] != ':')
        return "names are neither a list nor a map from 0, 1, 2, ...";
    if (strtoul(entry.p, NULL, 10) != out->names.n)
        return "the keys of names are not 0, 1, 2, ..., in this order";
    return add_name(out, trim(entry.p + digits + 1, entry.p + entry.n));
}

/* [a, b], {0: a, 1: b}, perhaps over several lines. */
static const char *flow_names(struct yaml *y, struct yolo_yaml *out, const char *p)
{
    const char close = *p++ == '[' ? ']' : '}';
    const char stops[] = {',', close, 0};
    for (;;) {
        while (p < y->end && (*p == '\n' || *p == ' ' || *p == '\t' || *p == '\r'))
            p++;
        if (p < y->end && *p == close)
            break;
        const char *end = scalar_end(p, y->end, stops);
        if (end == y->end || *end == '#')
            return "the list of names is not closed";
        const struct slice one = trim(p, end);
        const char *problem = close == ']' ? add_name(out, one) : add_entry(out, one);
        if (problem)
            return problem;
        p = end + (*end == ',');
    }
    y->p = line_end(y, p);
    return NULL;
}

/* "- a" or "0: a" below the key. */
static const char *block_names(struct yaml *y, struct yolo_yaml *out)
{
    while (y->p < y->end) {
        const char *begin = y->p + (*y->p == '\n'), *end = line_end(y, begin);
        const struct slice line = trim(begin, scalar_end(begin, end, "\n"));
        const bool item = line.n >= 2 && line.p[0] == '-' && line.p[1] == ' ';
        if (line.n > 0 && !item && line.p == begin) /* the next key */
            return NULL;
        const char *problem = line.n == 0 ? NULL
                              : item      ? add_name(out, trim(line.p + 2, line.p + line.n))
                                          : add_entry(out, line);
        if (problem)
            return problem;
        y->p = end;
    }
    return NULL;
}

static const char *take_shape(struct yolo_yaml *out, struct slice text)
{
    char copy[64];
    if (text.n >= sizeof copy)
        return "kpt_shape is not [points, dimensions]";
    memcpy(copy, text.p, text.n);
    copy[text.n] = 0;
    char *end;
    out->shape.points = copy[0] == '[' ? strtol(copy + 1, &end, 10) : 0;
    out->shape.dims = copy[0] == '[' && *end == ',' ? strtol(end + 1, &end, 10) : 0;
    const bool good =
        out->shape.points > 0 && out->shape.points < 10000 && (out->shape.dims == 2 || out->shape.dims == 3);
    return good ? NULL : "kpt_shape is not [points, dimensions], with 2 or 3 dimensions";
}

static const char *take_text(char to[1024], struct slice text)
{
    const struct slice s = unquote(text);
    if (s.n >= 1024 || memchr(s.p, 0, s.n))
        return "a path is too long";
    memcpy(to, s.p, s.n);
    to[s.n] = 0;
    return NULL;
}

/* A line that starts with a key. */
static const char *take_key(struct yaml *y, struct yolo_yaml *out)
{
    const char *begin = y->p, *end = line_end(y, begin), *colon = memchr(begin, ':', (size_t)(end - begin));
    y->p = end;
    if (!colon || *begin == '#' || *begin == ' ' || *begin == '-')
        return NULL;
    const struct slice key = unquote(trim(begin, colon));
    const struct slice value = trim(colon + 1, scalar_end(colon + 1, end, "\n"));
    char *const to = key.n == 4 && memcmp(key.p, "path", 4) == 0    ? out->path
                     : key.n == 5 && memcmp(key.p, "train", 5) == 0 ? out->train
                     : key.n == 3 && memcmp(key.p, "val", 3) == 0   ? out->val
                     : key.n == 4 && memcmp(key.p, "test", 4) == 0  ? out->test
                                                                    : NULL;
    if (to)
        return value.n > 0 && *value.p == '['
                   ? "a set with a list of folders is not supported; give each folder as a source"
                   : take_text(to, value);
    if (key.n == 9 && memcmp(key.p, "kpt_shape", 9) == 0)
        return take_shape(out, value);
    if (key.n != 5 || memcmp(key.p, "names", 5) != 0)
        return NULL;
    if (out->names.n > 0)
        return "the key names appears twice";
    if (value.n > 0 && (*value.p == '[' || *value.p == '{'))
        return flow_names(y, out, value.p);
    return value.n > 0 ? "names are neither a list nor a map from 0, 1, 2, ..." : block_names(y, out);
}

const char *yolo_yaml_read(struct yolo_yaml *out, const char *text, size_t n)
{
    struct yaml y = {.p = text, .end = text + n};
    const char *problem = NULL;
    *out = (struct yolo_yaml){0};
    while (!problem && y.p < y.end) {
        y.p += *y.p == '\n';
        if (y.p < y.end)
            problem = take_key(&y, out);
    }
    return problem;
}

void yolo_yaml_done(struct yolo_yaml *y)
{
    names_done(&y->names);
}
