/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_parts.c -- the parts of the command that need no library: values, guesses, the typeface,
 * synthetic images, signals.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../cli/args.h"
#include "../../cli/doctor.h"
#include "../../cli/out.h"
#include "../../cli/stop.h"
#include "../../cli/synth.h"
#include "../../cli/value.h"
#include "../../sheet/font.h"
#include "base/nearest.h"
#include "test.h"

static void numbers(void)
{
    uint64_t u;
    int64_t i;
    double d;
    CHECK(value_uint64("18446744073709551615", &u) == 0 && u == UINT64_MAX);
    CHECK(value_uint64("18446744073709551616", &u) == -1);
    CHECK(value_uint64("", &u) == -1 && value_uint64("1 ", &u) == -1 && value_uint64("+1", &u) == -1);
    CHECK(value_int64("-3", -5, 5, &i) == 0 && i == -3);
    CHECK(value_int64("6", -5, 5, &i) == -1 && value_int64("--3", -5, 5, &i) == -1);
    CHECK(value_int64("9223372036854775808", 0, INT64_MAX, &i) == -1);
    const char *end;
    CHECK(value_weight("0.7,1", &end, &d) == 0 && d > 0.699 && d < 0.701 && *end == ',');
    CHECK(value_weight("-1", &end, &d) == -1 && value_weight("", &end, &d) == -1);
    CHECK(value_share("5%", &d) == 0 && d > 0.0499 && d < 0.0501);
    CHECK(value_share("0.25", &d) == 0 && d > 0.2499 && d < 0.2501);
    CHECK(value_share("1.5", &d) == -1 && value_share("x", &d) == -1 && value_share("-0.1", &d) == -1);
}

static void sizes(void)
{
    static const struct {
        const char *text;
        int64_t bytes;
    } good[] = {{"4096", 4096},
                {"1k", 1024},
                {"512M", 512 << 20},
                {"2GiB", INT64_C(2) << 30},
                {"1.5G", INT64_C(3) << 29},
                {"3B", 3},
                {"1TiB", INT64_C(1) << 40},
                {"2MB", 2 << 20}};
    static const char *const bad[] = {"", "M", "1Q", "1iB", "1MiBs", "-1", "0", "1.2.3", "99999999T"};
    int64_t v;
    for (size_t k = 0; k < sizeof good / sizeof good[0]; k++) {
        CHECK(value_size(good[k].text, &v) == 0);
        CHECK_EQ(v, good[k].bytes);
    }
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
        CHECK(value_size(bad[k], &v) == -1);
}

static void grids(void)
{
    int c, r;
    CHECK(value_grid("8x5", &c, &r) == 0 && c == 8 && r == 5);
    CHECK(value_grid("8", &c, &r) == -1 && value_grid("x5", &c, &r) == -1 && value_grid("8x", &c, &r) == -1);
    CHECK(value_grid("0x5", &c, &r) == -1 && value_grid("8x500", &c, &r) == -1);
}

static const char *guess(const char *typed, const char *a, const char *b, const char *c)
{
    struct nearest n = {.word = typed};
    nearest_try(&n, a, strlen(a));
    nearest_try(&n, b, strlen(b));
    nearest_try(&n, c, strlen(c));
    return n.found ? n.found : "";
}

static void guesses(void)
{
    CHECK_STR(guess("bnech", "ls", "bench", "show"), "bench");
    CHECK_STR(guess("verfy", "show", "synth", "verify"), "verify");
    CHECK_STR(guess("check", "show", "checksum", "verify"), "checksum");
    CHECK_STR(guess("zzz", "show", "checksum", "verify"), "");
    CHECK_STR(guess("a_word_that_is_much_longer_than_any_option_has_ever_been", "show", "ls", "verify"), "");
}

static void words_fit(void)
{
    char cut[64];
    const float all = font_width("n01443537_goldfish", 9);
    CHECK(all > 80 && all < 140);
    font_fit("n01443537_goldfish", 9, all + 1, cut, sizeof cut);
    CHECK_STR(cut, "n01443537_goldfish");
    font_fit("n01443537_goldfish", 9, 50, cut, sizeof cut);
    CHECK(font_width(cut, 9) <= 50 && strlen(cut) > 4);
    font_fit("n01443537_goldfish", 9, 1, cut, sizeof cut);
    CHECK(strlen(cut) <= 3);
    char small[8];
    font_fit("n01443537_goldfish", 9, 1000, small, sizeof small);
    CHECK(strlen(small) < sizeof small);
}

static void words_on_a_sheet(void)
{
    struct sheet s;
    const struct sheet_colour white = {255, 255, 255}, black = {0, 0, 0};
    CHECK(sheet_init(&s, 40, 20, white) == 0);
    for (int c = 1; c < 256; c++) {
        const char text[] = {(char)c, 0};
        font_draw(&s, 30, 15, text, 12, 2, black); /* also over the edge */
    }
    int dark = 0;
    for (size_t i = 0; i < (size_t)s.w * (size_t)s.h; i++)
        dark += s.px[3 * i] < 128;
    CHECK(dark > 50);
    CHECK(s.px[0] == 255);
    sheet_done(&s);
    sheet_done(&s);
}

static uint64_t fingerprint(const struct synth_image *p)
{
    uint64_t h = 0xcbf29ce484222325u;
    const size_t n = (size_t)p->width * (size_t)p->height * (size_t)p->channels;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p->pixels[i]) * 0x100000001b3u;
    return h ^ (uint64_t)p->width << 32 ^ (uint64_t)p->height;
}

/* The pixels are the same on every machine and with every compiler, for ever. */
static void images_stay(void)
{
    static const uint64_t want[] = {0x3ffcd53aaf352462u, 0xeaeccc9a6f2d805fu, 0xb9c011ee6dfc2224u, 0x3652b52478212d9eu,
                                    0x4c8d7600dd861a0fu, 0x361863b715f6f942u, 0x5ef4a0aab212a006u, 0x14b036b5c366b6b4u};
    struct synth_painter *p = synth_painter_new(160);
    CHECK(p != NULL);
    for (int i = 0; p && i < (int)(sizeof want / sizeof want[0]); i++) {
        const struct synth_spec s = {.seed = 1, .index = i, .n_classes = 1024, .size = 160};
        struct synth_image pic;
        synth_paint(p, &s, &pic);
        CHECK(pic.width >= 32 && pic.height >= 32 && pic.width <= 192 && pic.height <= 192);
        if (fingerprint(&pic) != want[i]) {
            test_failures++;
            printf("image %d is 0x%016" PRIx64 "\n", i, fingerprint(&pic));
        }
    }
    synth_painter_free(p);
    synth_painter_free(NULL);
}

static void classes_differ(void)
{
    static const int sizes_of[] = {1, 2, 10, 100, 1000, SYNTH_MAX_CLASSES};
    for (size_t k = 0; k < sizeof sizes_of / sizeof sizes_of[0]; k++) {
        static unsigned char seen[SYNTH_COLOURS][SYNTH_SHAPES][SYNTH_PATTERNS];
        memset(seen, 0, sizeof seen);
        for (int i = 0; i < sizes_of[k]; i++) {
            const struct synth_class c = synth_class_of(i, sizes_of[k]);
            CHECK(c.pattern < SYNTH_PATTERNS && !seen[c.colour][c.shape][c.pattern]);
            if (c.pattern < SYNTH_PATTERNS)
                seen[c.colour][c.shape][c.pattern] = 1;
        }
    }
}

/* How a process ends that gets a signal, and perhaps has looked for one before. */
static int signalled(int looks)
{
    int status = 0;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        stop_watch();
        if (looks && stop_asked())
            _exit(2);
        raise(SIGTERM);
        _exit(stop_asked() ? 0 : 1);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void signals(void)
{
    CHECK_EQ(signalled(0), 130); /* nobody looks: at once */
    CHECK_EQ(signalled(1), 0);   /* told to who looks */
}

/* A dataset of 1,000 samples of 100 kB that delivers 100 images/s, or 50 from cold storage. */
static struct doctor patient(struct args *a)
{
    struct doctor d = {.a = a, .n = 10, .count = 1000, .bytes = 1000000, .n_runs = 3, .info.memory = 1 << 30};
    d.runs[0] = (struct doctor_run){.rate = 100, .gain = 1, .cold = 50, .n_rates = 2, .rates = {100, 100}, .fits = 1};
    d.runs[1] = (struct doctor_run){.rate = 200, .gain = 2, .n_rates = 2, .rates = {200, 200}, .fits = 1};
    d.runs[2] = (struct doctor_run){.rate = 190, .gain = 1.9, .n_rates = 2, .rates = {190, 190}, .fits = 1};
    d.runs[1].same = d.runs[2].same = d.runs[1].remedy = d.runs[2].remedy = 1;
    d.runs[0].stats.threads = d.info.threads = 2;
    return d;
}

static void verdicts(void)
{
    struct args a = {0};
    struct doctor d = patient(&a);
    struct doctor_verdict v = doctor_judge(&d);
    CHECK(v.best == &d.runs[1] && v.something && !v.is_cold && v.rate == 100);
    d.runs[2].gain = 2.2; /* hardly better, and later in the list */
    CHECK(doctor_judge(&d).best == &d.runs[1]);
    d.runs[1].same = 0; /* changes pixels, and is not much better */
    v = doctor_judge(&d);
    CHECK(v.best == &d.runs[2] && !v.bolder);
    d.runs[1].gain = 3;
    CHECK(doctor_judge(&d).bolder == &d.runs[1]);
    d.runs[2].fits = 0;
    CHECK(doctor_judge(&d).best == NULL);
    d.runs[1].rates[1] = 90; /* one turn was slower */
    v = doctor_judge(&d);
    CHECK(!v.bolder && !v.something);
    d.n_bad = 1;
    CHECK(doctor_judge(&d).something);
}

static void needs(void)
{
    struct args a = {.need = 90};
    struct doctor d = patient(&a);
    CHECK(doctor_judge(&d).enough == &d.runs[0] && !doctor_judge(&d).something);
    a.need = 150;
    CHECK(doctor_judge(&d).enough == &d.runs[1] && doctor_judge(&d).something);
    d.runs[1].same = 0; /* the one that keeps the pixels comes first */
    CHECK(doctor_judge(&d).enough == &d.runs[2]);
    a.need = 500;
    CHECK(doctor_judge(&d).enough == NULL && doctor_judge(&d).something);
}

static void cold_data(void)
{
    struct args a = {0};
    struct doctor d = patient(&a);
    d.count = 100000000; /* 10 TB */
    d.runs[2].cold = 80;
    struct doctor_verdict v = doctor_judge(&d);
    CHECK(v.is_cold && v.rate == 50 && strcmp(v.limit, "storage") == 0);
    CHECK(v.best == &d.runs[2]); /* the other was not measured cold */
    d.runs[2].rates[0] = d.runs[2].rates[1] = 90;
    CHECK(doctor_judge(&d).best == &d.runs[2]); /* slower with files in memory, where none of them is */
    d.runs[1].o.cache = STK_CACHE_DCT;
    CHECK(doctor_judge(&d).best == &d.runs[1]);
    d.runs[1].rates[1] = 90; /* a cache in memory: its turns count */
    CHECK(doctor_judge(&d).best == &d.runs[2]);
}

static void words_for_a_shell(void)
{
    static const struct {
        const char *word, *quoted;
    } words[] = {{"photos/train", "photos/train"},
                 {"my photos/{a,b}", "'my photos/{a,b}'"},
                 {"it's", "'it'\\''s'"},
                 {"", "''"},
                 {"s-{0..3}.tar", "'s-{0..3}.tar'"}};
    char to[40];
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        to[0] = 0;
        CHECK(out_add_quoted(to, sizeof to, words[i].word) == 0);
        CHECK_STR(to, words[i].quoted);
    }
    to[0] = 0;
    CHECK(out_add(to, 4, "abc") == 0 && out_add(to, 4, "") == 0 && out_add(to, 4, "d") == -1);
    to[0] = 0;
    CHECK(out_add_quoted(to, 5, "a b") == -1 && out_add_quoted(to, sizeof to, "a\nb") == -1);
}

/* More threads help while other programs use the CPUs, but not the machine. */
static void crowded(void)
{
    struct args a = {0};
    struct doctor d = patient(&a);
    d.n_runs = 2;
    d.runs[1].o.threads = 4;
    d.runs[0].stats.decode_s = 1;
    d.runs[0].cpu_s = 0.9;
    CHECK(doctor_judge(&d).best == &d.runs[1]);
    d.runs[0].cpu_s = 0.5;
    CHECK(doctor_judge(&d).best == NULL);
}

int main(int argc, char **argv)
{
    TESTS(T(numbers), T(sizes), T(grids), T(guesses), T(words_fit), T(words_on_a_sheet), T(images_stay),
          T(classes_differ), T(signals), T(verdicts), T(needs), T(cold_data), T(words_for_a_shell), T(crowded))
}
