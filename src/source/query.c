/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query.c -- key=value pairs joined by &. Nothing is escaped: a value may contain anything but &.
 */
#include "source/query.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/nearest_list.h"

/* Splits off one pair. Returns the text after it; NULL: there are no more pairs. */
static const char *pair(const char *text, size_t *key, size_t *all)
{
    if (!text || !*text)
        return NULL;
    *all = strcspn(text, "&");
    *key = strcspn(text, "=&");
    return text + *all + (text[*all] == '&');
}

static int unknown(const char *key, size_t n, const char *const *known, stk_error *e)
{
    char word[QUERY_TEXT];
    struct nearest_list all = {.like.word = word};
    memcpy(word, key, n);
    word[n] = 0;
    for (int i = 0; known[i]; i++)
        nearest_list_add(&all, known[i]);
    return nearest_list_error(&all, "after the ? there is no", "key", e);
}

static bool is_known(const char *key, size_t n, const char *const *known)
{
    for (int i = 0; known && known[i]; i++)
        if (strlen(known[i]) == n && memcmp(known[i], key, n) == 0)
            return true;
    return !known;
}

static int check_pair(const char *text, size_t key, size_t all, const char *const *known, stk_error *e)
{
    if (key == 0 || key == all || key >= QUERY_TEXT || all - key > QUERY_TEXT)
        return error_set(e, STK_EUSAGE, "open", "the text after the ? must be key=value pairs joined by &, not %.100s",
                         text);
    return is_known(text, key, known) ? STK_OK : unknown(text, key, known, e);
}

int query_check(const char *text, const char *const *known, stk_error *e)
{
    size_t key, all;
    int rc = STK_OK;
    for (const char *next; rc == STK_OK && (next = pair(text, &key, &all)) != NULL; text = next) {
        rc = check_pair(text, key, all, known, e);
        size_t other, ignored;
        for (const char *p = next, *q; rc == STK_OK && (q = pair(p, &other, &ignored)) != NULL; p = q)
            if (other == key && memcmp(p, text, key) == 0)
                return error_set(e, STK_EUSAGE, "open", "the key %.*s appears twice after the ?", (int)key, text);
    }
    return rc;
}

static bool take(const char *from, size_t n, char *to, size_t room)
{
    if (n >= room)
        return false;
    memcpy(to, from, n);
    to[n] = 0;
    return true;
}

bool query_get(const char *text, const char *key, char *value, size_t n)
{
    size_t length, all;
    for (const char *next; (next = pair(text, &length, &all)) != NULL; text = next)
        if (strlen(key) == length && memcmp(text, key, length) == 0 && length < all)
            return take(text + length + 1, all - length - 1, value, n);
    return false;
}

bool query_at(const char *text, int i, char *key, char *value)
{
    size_t length, all;
    for (const char *next; (next = pair(text, &length, &all)) != NULL; text = next)
        if (i-- == 0)
            return length < all && take(text, length, key, QUERY_TEXT) &&
                   take(text + length + 1, all - length - 1, value, QUERY_TEXT);
    return false;
}

int query_number(const char *text, const char *key, int64_t least, int64_t most, int64_t *value, stk_error *e)
{
    char word[QUERY_TEXT], *end;
    if (!query_get(text, key, word, sizeof word))
        return STK_OK;
    errno = 0;
    const long long v = strtoll(word, &end, 10);
    if (end == word || *end || errno || v < least || v > most)
        return error_set(e, STK_EUSAGE, "open", "%s must be an integer from %lld to %lld, not %.100s", key,
                         (long long)least, (long long)most, word);
    *value = v;
    return STK_OK;
}
