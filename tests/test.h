/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test.h -- the whole test framework.
 *
 *     static void grows(void) { CHECK(buf_add(&b, "x", 1) == 0); CHECK_EQ(b.len, 1); }
 *     int main(int argc, char **argv) { TESTS(T(grows), T(shrinks)) }
 *
 * Prints a line per case, exits with 1 when one failed and with 77 when all were skipped. An
 * argument runs only the cases whose name contains it.
 */
#ifndef TEST_H
#define TEST_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int test_failures, test_skipped;
static const char *test_case_name;

#define CHECK(x)                                                                                                       \
    do {                                                                                                               \
        if (!(x)) {                                                                                                    \
            test_failures++;                                                                                           \
            printf("%s:%d: in %s: not true: %s\n", __FILE__, __LINE__, test_case_name, #x);                            \
        }                                                                                                              \
    } while (0)

#define CHECK_EQ(a, b)                                                                                                 \
    do {                                                                                                               \
        const int64_t a_ = (int64_t)(a), b_ = (int64_t)(b);                                                            \
        if (a_ != b_) {                                                                                                \
            test_failures++;                                                                                           \
            printf("%s:%d: in %s: %s is %" PRId64 ", not %" PRId64 "\n", __FILE__, __LINE__, test_case_name, #a, a_,   \
                   b_);                                                                                                \
        }                                                                                                              \
    } while (0)

#define CHECK_STR(a, b)                                                                                                \
    do {                                                                                                               \
        const char *a_ = (a), *b_ = (b);                                                                               \
        if (strcmp(a_, b_) != 0) {                                                                                     \
            test_failures++;                                                                                           \
            printf("%s:%d: in %s: %s is \"%s\", not \"%s\"\n", __FILE__, __LINE__, test_case_name, #a, a_, b_);        \
        }                                                                                                              \
    } while (0)

/* Words that an error has to have in its text. */
#define CHECK_SAYS(text, words)                                                                                        \
    do {                                                                                                               \
        const char *text_ = (text), *words_ = (words);                                                                 \
        if (!strstr(text_, words_)) {                                                                                  \
            test_failures++;                                                                                           \
            printf("%s:%d: in %s: \"%s\" does not say \"%s\"\n", __FILE__, __LINE__, test_case_name, text_, words_);   \
        }                                                                                                              \
    } while (0)

#define SKIP(words)                                                                                                    \
    do {                                                                                                               \
        test_skipped++;                                                                                                \
        printf("skipped: %s: %s\n", test_case_name, words);                                                            \
        return;                                                                                                        \
    } while (0)

struct test_case {
    const char *name;
    void (*run)(void);
};

static inline int test_main(const struct test_case *cases, int n, int argc, char **argv)
{
    int ran = 0;
    for (int i = 0; i < n; i++) {
        if (argc > 1 && !strstr(cases[i].name, argv[1]))
            continue;
        const int before = test_failures;
        test_case_name = cases[i].name;
        cases[i].run();
        ran++;
        printf("%s %s\n", test_failures == before ? "ok    " : "FAILED", cases[i].name);
    }
    if (test_failures)
        return 1;
    return ran == test_skipped ? 77 : 0;
}

#define T(f)                                                                                                           \
    {                                                                                                                  \
#f, f                                                                                                          \
    }
#define TESTS(...)                                                                                                     \
    const struct test_case cases_[] = {__VA_ARGS__};                                                                   \
    return test_main(cases_, (int)(sizeof cases_ / sizeof cases_[0]), argc, argv);

#endif
