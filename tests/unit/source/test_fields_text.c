/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_fields_text.c -- the syntax of stk_options.fields.
 */
#include <string.h>

#include "source/fields_text.h"
#include "test.h"

static stk_error error;

static struct field_text one(const char *text)
{
    struct field_text t = {0};
    const char *at = text;
    CHECK_EQ(fields_text_next(text, &at, &t, &error), STK_OK);
    CHECK(at == NULL);
    return t;
}

static void fails(const char *text, const char *words)
{
    struct field_text t;
    const char *at = text;
    int rc = STK_OK;
    while (rc == STK_OK && at)
        rc = fields_text_next(text, &at, &t, &error);
    CHECK_EQ(rc, STK_EUSAGE);
    CHECK_SAYS(error.text, words);
}

static void names_and_columns(void)
{
    struct field_text t = one("jpg");
    CHECK_STR(t.name, "jpg");
    CHECK_STR(t.column, "jpg");
    CHECK_EQ(t.kind, STK_KIND_DEFAULT);
    t = one(" pixels = image/encoded : image ");
    CHECK_STR(t.name, "pixels");
    CHECK_STR(t.column, "image/encoded");
    CHECK_EQ(t.kind, STK_IMAGE);
    t = one("y=\"a, b: c\":int");
    CHECK_STR(t.column, "a, b: c");
    CHECK_EQ(t.kind, STK_INT);
    t = one("a_column_may_have_a_name_of_more_than_sixty_three_bytes_of_which_a_field_has_the_first");
    CHECK_STR(t.column, "a_column_may_have_a_name_of_more_than_sixty_three_bytes_of_which_a_field_has_the_first");
    CHECK_STR(t.name, "a_column_may_have_a_name_of_more_than_sixty_three_bytes_of_whic");
}

static void types_and_shapes(void)
{
    struct field_text t = one("x:float32(28, 28)");
    CHECK_EQ(t.kind, STK_TENSOR);
    CHECK_EQ(t.dtype, STK_FLOAT32);
    CHECK_EQ(t.ndim, 2);
    CHECK_EQ(t.shape[1], 28);
    t = one("x:int64(*)");
    CHECK_EQ(t.shape[0], -1);
    CHECK(!t.pads);
    t = one("x:int64(*,4) pad=-1");
    CHECK(t.pads);
    CHECK_STR(t.pad, "-1");
    CHECK_EQ(t.shape[1], 4);
    t = one("x:uint8()");
    CHECK(t.shaped && t.ndim == 0);
    t = one("x:int ? -7");
    CHECK(t.has_default);
    CHECK_STR(t.otherwise, "-7");
    t = one("c:text?\"\"");
    CHECK(t.has_default);
    CHECK_STR(t.otherwise, "");
}

static void what_follows_the_image(void)
{
    struct field_text t = one("m:mask");
    CHECK_EQ(t.follow, FOLLOW_MASK);
    CHECK_EQ(t.dtype, STK_DTYPE_DEFAULT);
    t = one("m:mask(int32)");
    CHECK_EQ(t.dtype, STK_INT32);
    CHECK_EQ(one("m:masks").follow, FOLLOW_MASKS);
    t = one("boxes=bbox:boxes");
    CHECK_EQ(t.follow, FOLLOW_BOXES);
    CHECK_EQ(t.box_format, BOX_XYXY);
    t = one("bbox:boxes(cxcywh, relative) ? \"\"");
    CHECK_EQ(t.box_format, BOX_CXCYWH);
    CHECK(t.relative && t.has_default);
    t = one("p:keypoints(17, 3)");
    CHECK_EQ(t.follow, FOLLOW_POINTS);
    CHECK(t.shaped && t.ndim == 2 && t.shape[0] == 17);
    t = one("area:each:float32");
    CHECK_EQ(t.follow, FOLLOW_EACH);
    CHECK_EQ(t.dtype, STK_FLOAT32);
    CHECK_EQ(one("area:each:float32(2)").shape[0], 2);
}

/* A chosen field keeps its kind, in a text that reads back. */
static void what_follows_is_written(void)
{
    static const char own[] = "a:mask(int64), b:boxes(xywh, relative), c:keypoints(17,3), d:each:int64, e:masks";
    struct buf all = {0}, again = {0};
    CHECK_EQ(fields_text_choose(own, NULL, &all, &error), STK_OK);
    CHECK_STR((const char *)all.data, "\"a\"=\"a\":mask(int64), \"b\"=\"b\":boxes(xywh, relative), "
                                      "\"c\"=\"c\":keypoints(17,3), \"d\"=\"d\":each:int64, \"e\"=\"e\":masks");
    CHECK_EQ(fields_text_choose((const char *)all.data, "b", &again, &error), STK_OK);
    CHECK_STR((const char *)again.data, "\"b\"=\"b\":boxes(xywh, relative)");
    buf_done(&all);
    buf_done(&again);
}

static void several(void)
{
    const char *text = "a, b=c:int,d:text", *at = text;
    struct field_text t;
    const char *const names[] = {"a", "b", "d"};
    for (int i = 0; i < 3; i++) {
        CHECK(at != NULL);
        CHECK_EQ(fields_text_next(text, &at, &t, &error), STK_OK);
        CHECK_STR(t.name, names[i]);
    }
    CHECK(at == NULL);
}

static void what_is_refused(void)
{
    fails("", "expected a column at \"the end\"");
    fails("a,,b", "expected a column");
    fails("a,", "expected a column");
    fails("a pad=0", "a kind before pad");
    fails("a:flaot", "image, int, float");
    fails("a:float32(0)", "above 0");
    fails("a:float32(3", "expected \")\"");
    fails("a:float32(1,1,1,1,1,1,1,1,1)", "fewer dimensions");
    fails("a:text(3)", "no shape");
    fails("a:int64(*) pad=", "expected a number");
    fails("a:boxes(xyhw)", "xyxy, xywh, cxcywh or relative at \"xyhw)");
    fails("a:boxes(xywh", "expected \")\"");
    fails("a:mask(float32)", "uint8, int32 or int64");
    fails("a:masks(3)", "no shape");
    fails("a:each:text", "each:TYPE");
    fails("\"a", "closing quote");
    fails("a:int64(3) b", "expected \",\"");
    fails("a_name_of_more_than_sixty_three_bytes_which_is_what_the_fields_have_room_for=x", "at most 63 bytes");
}

int main(int argc, char **argv)
{
    TESTS(T(names_and_columns), T(types_and_shapes), T(what_follows_the_image), T(what_follows_is_written), T(several),
          T(what_is_refused))
}
