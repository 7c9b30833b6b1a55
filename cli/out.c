/* SPDX-License-Identifier: Apache-2.0 */
/*
 * out.c -- numbers for people, messages, colours, exit codes.
 */
#include "out.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* ------------------------------------------------------------------ numbers */

/* Separates groups of three digits by commas. */
static void group(char *to, size_t n, const char *digits)
{
    const char *p = digits;
    size_t len = 0;
    if (*p == '-' && len + 1 < n)
        to[len++] = *p++;
    const size_t whole = strspn(p, "0123456789");
    for (size_t i = 0; p[i] && len + 2 < n; i++) {
        if (i > 0 && i < whole && (whole - i) % 3 == 0)
            to[len++] = ',';
        to[len++] = p[i];
    }
    to[len] = 0;
}

struct out_text out_count(int64_t n)
{
    char digits[32];
    struct out_text t;
    snprintf(digits, sizeof digits, "%lld", (long long)n);
    group(t.s, sizeof t.s, digits);
    return t;
}

struct out_text out_some(int64_t n, const char *one, const char *many)
{
    struct out_text t;
    snprintf(t.s, sizeof t.s, "%.26s %.20s", out_count(n).s, n == 1 ? one : many);
    return t;
}

struct out_text out_real(double v, int decimals)
{
    char digits[40];
    struct out_text t;
    snprintf(digits, sizeof digits, "%.*f", decimals, v);
    group(t.s, sizeof t.s, digits);
    return t;
}

struct out_text out_bytes(int64_t n)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double v = (double)n;
    size_t u = 0;
    while (v >= 1000 && u + 1 < sizeof units / sizeof units[0]) {
        v /= 1024;
        u++;
    }
    struct out_text t;
    snprintf(t.s, sizeof t.s, "%.*f %s", u == 0 || v >= 100 ? 0 : v >= 10 ? 1 : 2, v, units[u]);
    return t;
}

struct out_text out_seconds(double s)
{
    struct out_text t;
    if (s < 0.001)
        snprintf(t.s, sizeof t.s, "%.0f µs", s * 1e6);
    else if (s < 0.1)
        snprintf(t.s, sizeof t.s, "%.1f ms", s * 1e3);
    else if (s < 100)
        snprintf(t.s, sizeof t.s, "%.2f s", s);
    else
        snprintf(t.s, sizeof t.s, "%lld min %02d s", (long long)s / 60, (int)((long long)s % 60));
    return t;
}

struct out_text out_share(double part, double whole)
{
    struct out_text t;
    const double percent = whole > 0 ? 100 * part / whole : 0;
    snprintf(t.s, sizeof t.s, "%.*f %%", percent > 0 && percent < 9.95 ? 1 : 0, percent);
    return t;
}

double out_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ------------------------------------------------------------------ terminal */

int out_is_terminal(FILE *f)
{
    const char *term = getenv("TERM");
    return isatty(fileno(f)) && !(term && strcmp(term, "dumb") == 0);
}

int out_width(FILE *f)
{
    struct winsize w;
    if (isatty(fileno(f)) && ioctl(fileno(f), TIOCGWINSZ, &w) == 0 && w.ws_col >= 20)
        return w.ws_col;
    return 100;
}

int out_height(FILE *f)
{
    struct winsize w;
    return isatty(fileno(f)) && ioctl(fileno(f), TIOCGWINSZ, &w) == 0 ? w.ws_row : 0;
}

void out_paint(FILE *f, enum out_paint p)
{
    static const char *const codes[] = {"\033[0m", "\033[1m", "\033[2m", "\033[32m", "\033[31m"};
    const char *no = getenv("NO_COLOR");
    if (out_is_terminal(f) && !(no && no[0]))
        fputs(codes[p], f);
}

void out_name(FILE *f, const char *name)
{
    for (const char *p = name; *p; p++) {
        const unsigned char c = (unsigned char)*p;
        if (c < 0x20 || c == 0x7f)
            fprintf(f, "\\x%02x", c);
        else
            putc(c, f);
    }
}

int out_add(char *to, size_t n, const char *words)
{
    const size_t len = strlen(to), more = strlen(words);
    if (len + more >= n)
        return -1;
    memcpy(to + len, words, more + 1);
    return 0;
}

int out_add_quoted(char *to, size_t n, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
    const char *quote = word[0] && !word[strspn(word, plain)] ? "" : "'";
    int rc = out_add(to, n, quote);
    for (const char *p = word; !rc && *p; p++) {
        const char one[] = {*p, 0};
        const int is_control = (unsigned char)*p < 0x20 || *p == 0x7f;
        rc = is_control ? -1 : out_add(to, n, *p == '\'' ? "'\\''" : one);
    }
    return rc ? rc : out_add(to, n, quote);
}

/* ------------------------------------------------------------------ messages and ends */

/* The last message and the failure, for the document of --json. */
static struct {
    char said[1024];
    int code, printed;
    stk_error error;
} last;

void out_say(const char *command, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(last.said, sizeof last.said, format, args);
    va_end(args);
    fprintf(stderr, "stoker%s%s: %s\n", command ? " " : "", command ? command : "", last.said);
}

/* A sample that cannot be read is a bad sample. A source that cannot be read is a failure of the machine, and so is a
 * lack of descriptors or memory. */
static int end_of_reading(const stk_error *e)
{
    const int ran_out = e && (e->os_error == EMFILE || e->os_error == ENFILE || e->os_error == ENOMEM);
    return e && e->sample >= 0 && !ran_out ? END_BAD : END_MACHINE;
}

/* The only place that maps error codes to exit statuses. */
static int end_of(int code, const stk_error *e)
{
    switch (code) {
    case STK_OK:
    case STK_END:
        return END_GOOD;
    case STK_EUSAGE:
    case STK_ECHANGED:
    case STK_EBUILD:
        return END_USAGE;
    case STK_EDATA:
    case STK_EROTTEN:
        return END_BAD;
    case STK_EIO:
    case STK_ENOTFOUND:
        return end_of_reading(e);
    default:
        return END_MACHINE;
    }
}

void out_typed(char *to, size_t n, const char *words)
{
    static const char *const names[][2] = {
        {"batch_size", "--batch-size"},     {"max_bad", "--max-bad"},       {"max_pixels", "--max-pixels"},
        {"max_bytes", "--max-bytes"},       {"world_size", "--world-size"}, {"on_error", "--on-error"},
        {"drop_last", "--drop-last"},       {"pad_last", "--pad-last"},     {"cache_dir", "--cache-dir"},
        {"raise memory", "raise --memory"},
    };
    size_t len = 0;
    while (*words && len + 16 < n) {
        size_t i = 0;
        while (i < sizeof names / sizeof names[0] && strncmp(words, names[i][0], strlen(names[i][0])) != 0)
            i++;
        if (i == sizeof names / sizeof names[0]) {
            to[len++] = *words++;
            continue;
        }
        len += (size_t)snprintf(to + len, n - len, "%s", names[i][1]);
        words += strlen(names[i][0]);
    }
    to[len] = 0;
}

/* Changes only the reason; the file name before it stays as it is. */
static void type_error(stk_error *e)
{
    char words[sizeof e->text];
    const size_t n = strlen(e->text), reason = strlen(e->reason);
    if (reason > n || strcmp(e->text + n - reason, e->reason) != 0)
        return;
    out_typed(words, sizeof words, e->reason);
    snprintf(e->text + n - reason, sizeof e->text - (n - reason), "%s", words);
}

/* Whether the sample itself is bad; if not, a later stage failed. */
static int is_of_sample(const stk_error *e)
{
    return strcmp(e->stage, "read") == 0 || strcmp(e->stage, "decode") == 0;
}

int out_fail(const char *command, int code, const stk_error *e)
{
    last.code = code;
    last.error = *e;
    type_error(&last.error);
    if (!e->text[0])
        snprintf(last.error.text, sizeof last.error.text, "%s", stk_code_words(code));
    fprintf(stderr, "stoker %s: ", command);
    out_name(stderr, last.error.text);
    putc('\n', stderr);
    const int end = end_of(code, e);
    if (end == END_BAD && code != STK_EROTTEN && e->sample >= 0 && is_of_sample(e))
        fprintf(stderr, "  `stoker verify` lists every bad sample; --on-error skip%s continues without them\n",
                strcmp(command, "pack") == 0 ? "" : " or replace");
    return end;
}

static const char *code_name(int code)
{
    switch (code) {
#define NAME(name, value, words)                                                                                       \
    case value:                                                                                                        \
        return #name;
        STK_CODES(NAME)
#undef NAME
    default:
        return "EBUG";
    }
}

static void json_error(struct json *j, const char *code, const char *text, const stk_error *e)
{
    json_open(j, "error", '{');
    json_text(j, "code", code);
    json_text(j, "text", text);
    json_text(j, "path", e && e->path[0] ? e->path : NULL);
    if (e && e->sample >= 0)
        json_int(j, "sample", e->sample);
    else
        json_raw(j, "sample", "null");
    json_close(j, '}');
}

void out_json_error(struct json *j)
{
    last.printed = 1;
    if (last.code)
        json_error(j, code_name(last.code), last.error.text, &last.error);
    else
        json_raw(j, "error", "null");
}

void out_json_failure(int end)
{
    struct json j = {.f = stdout};
    if (last.printed || end == END_GOOD)
        return;
    json_open(&j, NULL, '{');
    if (last.code)
        out_json_error(&j);
    else if (end == END_INTERRUPTED)
        json_error(&j, "STOPPED", "interrupted", NULL);
    else
        json_error(&j, end == END_USAGE ? "EUSAGE" : "ENOMEM", last.said, NULL);
    json_close(&j, '}');
}

/* Whether the line was printed before. Remembers the first few lines. */
static int is_repeated(struct out_log *l, const char *text)
{
    const int64_t kept = sizeof l->seen / sizeof l->seen[0];
    const uint64_t h = stk_hash(text, strlen(text), 0);
    for (int64_t i = 0; i < l->n && i < kept; i++)
        if (l->seen[i] == h)
            return 1;
    if (l->n < kept)
        l->seen[l->n] = h;
    return 0;
}

static void log_line(void *user, const char *text)
{
    struct out_log *l = user;
    enum { LINES = sizeof l->seen / sizeof l->seen[0] };
    if (is_repeated(l, text) || ++l->n > LINES + 1)
        return;
    fprintf(stderr, "stoker %s: ", l->command);
    out_name(stderr, l->n > LINES ? "further messages are only counted" : text);
    putc('\n', stderr);
}

const stk_log_hook *out_log_init(struct out_log *l, const char *command)
{
    *l = (struct out_log){.command = command, .hook = {.user = l, .line = log_line}};
    return &l->hook;
}

int out_close(const char *command, int end)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return end;
    /* The reader closed the pipe on purpose: no message. */
    if (errno != EPIPE)
        out_say(command, "cannot write the result: %s", errno ? strerror(errno) : "an earlier write failed");
    return END_MACHINE;
}
