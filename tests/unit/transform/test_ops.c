/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_ops.c -- the text of ops: what is read, what it means, and its error messages. Covers ops.c, ops_args.c,
 * ops_check.c, ops_text.c and ops_write.c.
 */
#include "transform/ops.h"

#include "support/comma_locale.h"

/* A text, and the same text with all defaults. */
static const char *const good[][2] = {
    {"CenterCrop(8) | Normalize(half) | MixUp(0.2)",
     "CenterCrop(size=(8, 8)) | Normalize(mean=0.5, std=0.5) | MixUp(alpha=0.2, num_classes=None)"},
    {"CenterCrop(8) | RandomApply([CutMix(num_classes=10)], p=0.3)",
     "CenterCrop(size=(8, 8)) | RandomApply(transforms=[CutMix(alpha=1, num_classes=10)], p=0.3)"},
    {"CenterCrop(8) | Mixup(0.8, cutmix_minmax=(0.2, 0.8), mode=pair)",
     "CenterCrop(size=(8, 8)) | Mixup(mixup_alpha=0.8, cutmix_alpha=0, cutmix_minmax=(0.2, 0.8), prob=1, "
     "switch_prob=0.5, mode=pair, correct_lam=True, label_smoothing=0.1, num_classes=1000)"},
    {"RandomResizedCrop(224) | RandomHorizontalFlip | Normalize",
     "RandomResizedCrop(size=(224, 224), scale=(0.08, 1), ratio=(0.75, 1.3333333333333333), interpolation=bilinear, "
     "antialias=True) | RandomHorizontalFlip(p=0.5) | Normalize(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, "
     "0.225))"},
    {"RandomResizedCrop( 32 ,scale = ( 0.08 , 1. ) , ratio=[3/4, 4.0/3.0],)",
     "RandomResizedCrop(size=(32, 32), scale=(0.08, 1), ratio=(0.75, 1.3333333333333333), interpolation=bilinear, "
     "antialias=True)"},
    {"Resize(256, InterpolationMode.BICUBIC)|\n\tCenterCrop((224,192))",
     "Resize(size=256, interpolation=bicubic, max_size=None, antialias=True) | CenterCrop(size=(224, 192))"},
    {"Resize([256], 'lanczos', max_size=300, antialias=None) | CenterCrop([224])",
     "Resize(size=256, interpolation=lanczos, max_size=300, antialias=True) | CenterCrop(size=(224, 224))"},
    {"Resize(size=(7, 9), interpolation=\"nearest-exact\", antialias=False)",
     "Resize(size=(7, 9), interpolation=nearest, max_size=None, antialias=False)"},
    {"Resize((7, 9), 3)", "Resize(size=(7, 9), interpolation=bicubic, max_size=None, antialias=True)"},
    {"RandomCrop(32, padding=4)", "RandomCrop(size=(32, 32), padding=(4, 4, 4, 4), pad_if_needed=False, fill=0, "
                                  "padding_mode=constant)"},
    {"RandomCrop((32, 30), (1, 2), True, (1, 2, 3), 'constant')",
     "RandomCrop(size=(32, 30), padding=(1, 2, 1, 2), pad_if_needed=True, fill=(1, 2, 3), padding_mode=constant)"},
    {"CenterCrop(4) | Pad((1, 2, 3, 4), fill=127.5, padding_mode=reflect)",
     "CenterCrop(size=(4, 4)) | Pad(padding=(1, 2, 3, 4), fill=127, padding_mode=reflect)"},
    {"CenterCrop(4) | RandomVerticalFlip(p=1e-7) | Grayscale",
     "CenterCrop(size=(4, 4)) | RandomVerticalFlip(p=1.0e-7) | Grayscale(num_output_channels=1)"},
    {"Grayscale(3) | CenterCrop(1) | Normalize((0.5,), 0.25)",
     "Grayscale(num_output_channels=3) | CenterCrop(size=(1, 1)) | Normalize(mean=0.5, std=0.25)"},
    {"CenterCrop(1) | Normalize(half)", "CenterCrop(size=(1, 1)) | Normalize(mean=0.5, std=0.5)"},
    {"image: CenterCrop(1) | Normalize(mean=(0.1, 0.2, 0.3), std=(1, 2, 3), inplace=True) ;",
     "CenterCrop(size=(1, 1)) | Normalize(mean=(0.1, 0.2, 0.3), std=(1, 2, 3))"},
    {"Resize(256) | CenterCrop(224) | ToTensor | Normalize(clip)",
     "Resize(size=256, interpolation=bilinear, max_size=None, antialias=True) | CenterCrop(size=(224, 224)) | ToTensor "
     "| "
     "Normalize(mean=(0.48145466, 0.4578275, 0.40821073), std=(0.26862954, 0.26130258, 0.27577711))"},
    {"ToImage() | ToDtype(torch.uint8, scale=True) | RandomCrop(8) | ToDtype(torch.float32, scale=True) | "
     "RandomHorizontalFlip(0)",
     "ToImage | ToDtype(dtype=uint8, scale=True) | RandomCrop(size=(8, 8), padding=(0, 0, 0, 0), pad_if_needed=False, "
     "fill=0, padding_mode=constant) | ToDtype(dtype=float32, scale=True) | RandomHorizontalFlip(p=0)"},
    {"PILToTensor | CenterCrop(300) | Resize(30)",
     "PILToTensor | CenterCrop(size=(300, 300)) | Resize(size=30, interpolation=bilinear, max_size=None, "
     "antialias=True)"},
    {"CenterCrop(4) | ToTensor | RandomErasing(value='random') | Normalize(half) | RandomErasing(1, value=(1, 2, 3), "
     "count=2)",
     "CenterCrop(size=(4, 4)) | ToTensor | RandomErasing(p=0.5, scale=(0.02, 0.33), ratio=(0.3, 3.3), value=random, "
     "count=(1, 1)) | Normalize(mean=0.5, std=0.5) | RandomErasing(p=1, scale=(0.02, 0.33), ratio=(0.3, 3.3), "
     "value=(1, 2, 3), count=(2, 2))"},
    {"CenterCrop(4) | TimmAugment(rand-m9-mstd0.5-inc1)",
     "CenterCrop(size=(4, 4)) | TimmAugment(policy=\"rand-m9-mstd0.5-inc1\", interpolation=random, fill=128, "
     "translate_pct=0.45)"},
    {"CenterCrop(4) | RandomApply(RandomInvert, p=1)",
     "CenterCrop(size=(4, 4)) | RandomApply(transforms=[RandomInvert(p=0.5)], p=1)"},
    {"RandomApply([CenterCrop(4), RandomApply(transforms=[RandomSolarize(128.5), RGB,], p=0.25)], 1) | "
     "RandomPosterize(4)",
     "RandomApply(transforms=[CenterCrop(size=(4, 4)), RandomApply(transforms=[RandomSolarize(threshold=128.5, p=0.5), "
     "RGB], p=0.25)], p=1) | RandomPosterize(bits=4, p=0.5)"},
};

static void reads_and_writes(void)
{
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct ops ops;
        stk_error e = {0};
        char text[OPS_TEXT], again[OPS_TEXT];
        CHECK_EQ(ops_read(&ops, good[i][0], STK_FLOAT32, 0, 0, &e), STK_OK);
        if (e.code)
            printf("%s: %s\n", good[i][0], e.text);
        ops_write(&ops, text, sizeof text);
        CHECK_STR(text, good[i][1]);
        CHECK_EQ(ops_read(&ops, text, STK_FLOAT32, 0, 0, &e), STK_OK);
        ops_write(&ops, again, sizeof again);
        CHECK_STR(again, text);
    }
}

/* A text, and a part of its error message. */
static const char *const bad[][2] = {
    {"", "Resize(256) | CenterCrop(224)"},
    {"MixUp | CenterCrop(8)",
     "column 9: CenterCrop comes after MixUp, which combines the rows of a batch; move it before that op"},
    {"CenterCrop(8) | MixUp | CutMix", "column 25: CutMix comes after MixUp"},
    {"CenterCrop(8) | MixUp(0)", "column 17: MixUp: alpha must be above 0"},
    {"CenterCrop(8) | RandomApply([MixUp, MixUp])", "MixUp: use it once"},
    {"CenterCrop(8) | RandomApply([MixUp, CutMix(num_classes=3)])", "CutMix: use it once; RandomChoice"},
    {"CenterCrop(8) | RandomApply([Mixup])", "Mixup cannot be inside RandomApply: it has prob"},
    {"CenterCrop(8) | Mixup(0)", "mixup_alpha or cutmix_alpha must be above 0"},
    {"CenterCrop(8) | Mixup(mode=row)", "expected batch, pair or elem"},
    {"CenterCrop(8) | MixUp(num_classes=1)", "expected a whole number from 2 to 1048576"},
    {" \n ", "no ops are given"},
    {"RandomResizeCrop(224)", "ops: column 1: unknown op \"RandomResizeCrop\"; did you mean RandomResizedCrop?"},
    {"Resize(8) | centercrop(8)", "ops: column 13: unknown op \"centercrop\"; did you mean CenterCrop?"},
    {"Sepia(1)", "unknown op \"Sepia\"; docs/ops.md lists the ops"},
    {"CenterCrop(8) |", "column 16: found the end, expected an op"},
    {"| CenterCrop(8)", "column 1: found \"|\", expected an op"},
    {"CenterCrop(8) Normalize", "column 15: found \"Normalize\", expected \"|\" or the end"},
    {"CenterCrop(8", "column 13: found the end, expected \",\" or \")\""},
    {"CenterCrop(", "column 12: found the end, expected a value"},
    {"CenterCrop", "CenterCrop needs its argument size"},
    {"CenterCrop()", "CenterCrop needs its argument size"},
    {"CenterCrop(0)", "column 12: CenterCrop: size: found 0, expected a whole number from 1 to 65536"},
    {"CenterCrop(65537)", "found 65537, expected"},
    {"CenterCrop(8.5)", "found 8.5, expected a whole number"},
    {"CenterCrop(1e3)", "found 1e3, expected a whole number"},
    {"CenterCrop((1,2,3))", "found (1,2,3), expected"},
    {"CenterCrop(())", "found (), expected"},
    {"CenterCrop(big)", "found big, expected"},
    {"CenterCrop(-8)", "found -8, expected"},
    {"CenterCrop((1, (2, 3)))", "expected a number"},
    {"CenterCrop((1; 2))", "column 14: found \";\", expected \",\" or \")\""},
    {"CenterCrop((1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7))", "more than 16 numbers"},
    {"CenterCrop(8, 9)", "column 15: CenterCrop takes at most 1 argument"},
    {"CenterCrop(size=8, size=9)", "size is given twice"},
    {"CenterCrop(sise=8)", "column 12: CenterCrop has no argument \"sise\"; did you mean size?"},
    {"CenterCrop(zoom=8)", "CenterCrop has no argument \"zoom\"; it takes size"},
    {"CenterCrop(8) | ToTensor(1)", "column 26: ToTensor takes no arguments"},
    {"CenterCrop(8) | ToTensor(a=1)", "ToTensor takes no arguments"},
    {"Resize(interpolation=bilinear, 8)", "an argument without a name comes after one with a name"},
    {"Resize((8, 8), bilinea)",
     "expected nearest, nearest_exact, box, bilinear, hamming, bicubic or lanczos; did you mean "
     "bilinear?"},
    {"Resize((8, 8), 7)", "found 7, expected nearest"},
    {"Resize((8, 8), antialias=2)", "found 2, expected True or False"},
    {"Resize((8, 8), antialias=ture)", "did you mean True?"},
    {"Resize((8, 8), max_size=9)", "max_size is allowed only if size is one number"},
    {"Resize(8, max_size=8) | CenterCrop(8)", "max_size 8 must be larger than size 8"},
    {"Resize(8, 'bil) | CenterCrop(8)", "the closing quote is missing"},
    {"Resize(256)", "CenterCrop"},
    {"CenterCrop(8) | Resize(256) | Pad(65000)", "a side becomes more than 65536"},
    {"Pad(3)", "the results can differ in size"},
    {"RandomHorizontalFlip", "the results can differ in size"},
    {"CenterCrop((1, 60000)) | Resize(256)", "the longer side becomes more than 65536"},
    {"RandomCrop(8, padding=-1)", "found -1, expected whole numbers from 0"},
    {"RandomCrop(8, padding=(1, 2, 3))", "found (1, 2, 3), expected whole numbers"},
    {"CenterCrop(8) | Pad(None)", "found None, expected whole numbers"},
    {"RandomCrop(8, fill=256)", "found 256, expected a number from 0 to 255"},
    {"RandomCrop(8, padding_mode=refelct)", "did you mean reflect?"},
    {"Grayscale | RandomCrop(8, fill=(1, 2, 3))", "fill has 3 numbers, but the image has 1 channel here"},
    {"RandomResizedCrop(8, scale=0.5)", "expected (min, max) share of the area"},
    {"RandomResizedCrop(8, scale=(1, 0.5))", "expected (min, max) share of the area"},
    {"RandomResizedCrop(8, ratio=(0, 1))", "expected (min, max) ratio of width to height"},
    {"RandomResizedCrop(8, ratio=(1/0, 1))", "the fraction divides by zero"},
    {"RandomResizedCrop(8, ratio=(1, 1e999))", "the number is too large"},
    {"CenterCrop(8) | RandomHorizontalFlip(1.5)", "found 1.5, expected a probability"},
    {"CenterCrop(8) | RandomHorizontalFlip(nan)", "found nan, expected a probability"},
    {"CenterCrop(8) | Grayscale(2)", "found 2, expected 1 or 3"},
    {"CenterCrop(8) | Normalize(imagenette)", "did you mean imagenet?"},
    {"CenterCrop(8) | Normalize((1, 2))", "expected one mean per channel"},
    {"CenterCrop(8) | Normalize((1, 2, 3))", "std is missing"},
    {"CenterCrop(8) | Normalize((1, 2, 3), (1, 0, 1))", "expected one standard deviation per channel"},
    {"CenterCrop(8) | Grayscale | Normalize", "Normalize has values for 3 channels, but the image has 1 here"},
    {"Normalize | CenterCrop(8)", "column 13: CenterCrop comes after Normalize; move it before Normalize"},
    {"CenterCrop(8) | Normalize | ToTensor", "ToTensor comes after Normalize; move it before Normalize"},
    {"ToTensor | Resize((8, 8))", "Resize comes after ToTensor, which makes floats; move it before that op"},
    {"ToTensor | CenterCrop(8) | Pad(1, fill=3)", "Pad comes after ToTensor"},
    {"CenterCrop(8) | ToTensor | ToDtype(uint8)", "floats cannot become bytes again"},
    {"CenterCrop(8) | ToDtype(float16)", "ToDtype(float16), but the dtype of the loader is float32"},
    {"CenterCrop(8) | ToDtype(uint8)", "column 17: ToDtype(uint8), but the dtype of the loader is float32"},
    {"ToDtype(uint8, scale=True) | CenterCrop(8)", "column 1: ToDtype(uint8), but the dtype of the loader is float32"},
    {"CenterCrop(8) | ToDtype(int64)", "found int64, expected float32, float16, bfloat16 or uint8"},
    {"image: CenterCrop(8); mask: CenterCrop(8)", "column 21: only one pipeline is possible here"},
    {"mask: CenterCrop(8)", "pipeline \"mask\": only \"image\" is possible here"},
    {"RandomApply([CenterCrop(8)])", "the results can differ in size"},
    {"CenterCrop(8) | RandomApply([Grayscale(1)])", "column 17: RandomApply: the image has 1 or 3 channels"},
    {"CenterCrop(8) | RandomApply([ToTensor])", "column 30: ToTensor cannot be inside RandomApply"},
    {"CenterCrop(8) | RandomApply([RGB RGB])", "column 34: found \"RGB\", expected \",\" or \"]\""},
    {"CenterCrop(8) | RandomApply([RGB", "found the end, expected \",\" or \"]\""},
    {"CenterCrop(8) | RandomApply(3)", "column 29: found \"3\", expected an op"},
    {"CenterCrop(8) | RandomApply(p=1)", "RandomApply needs its argument transforms"},
    {"RandomApply(RandomApply(RandomApply(RandomApply(RandomApply(RGB)))))", "more than 4 deep"},
    {"CenterCrop(8) | RandomPosterize(0)", "found 0, expected a whole number of bits from 1 to 8"},
    {"ToTensor | RandomInvert", "RandomInvert comes after ToTensor, which makes floats"},
    {"CenterCrop(8) | \x01\x02", "column 17: found \"?\", expected an op"},
};

static void errors_point_at_the_place(void)
{
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct ops ops;
        stk_error e = {0};
        CHECK_EQ(ops_read(&ops, bad[i][0], STK_FLOAT32, 0, 0, &e), STK_EUSAGE);
        if (!strstr(e.text, bad[i][1]))
            printf("%s\n  gives  %s\n  not    %s\n", bad[i][0], e.text, bad[i][1]);
        CHECK(strstr(e.text, bad[i][1]) != NULL);
        CHECK(strncmp(e.text, "ops: ", 5) == 0);
        CHECK_EQ(ops_read(&ops, bad[i][0], STK_FLOAT32, 0, 0, NULL), STK_EUSAGE);
    }
}

static void types_must_agree(void)
{
    struct ops ops;
    stk_error e = {0};
    CHECK_EQ(ops_read(&ops, "CenterCrop(8) | Normalize", STK_UINT8, 0, 0, &e), STK_EUSAGE);
    CHECK(strstr(e.text, "the dtype is uint8") != NULL);
    CHECK_EQ(ops_read(&ops, "CenterCrop(8) | ToTensor", STK_UINT8, 0, 0, &e), STK_EUSAGE);
    CHECK(strstr(e.text, "ToTensor gives floats") != NULL);
    CHECK_EQ(ops_read(&ops, "CenterCrop(8) | ToDtype(float32)", STK_UINT8, 0, 0, &e), STK_EUSAGE);
    CHECK(strstr(e.text, "ToDtype(float32), but the dtype of the loader is uint8") != NULL);
    CHECK_EQ(ops_read(&ops, "CenterCrop(8) | ToDtype(uint8) | Normalize", STK_FLOAT32, 0, 0, &e), STK_OK);
    CHECK_EQ(ops_read(&ops, "CenterCrop(8) | PILToTensor", STK_UINT8, 0, 0, &e), STK_OK);
    CHECK_EQ(ops_read(&ops, "CenterCrop(8) | ToDtype(uint8)", STK_UINT8, 0, 0, &e), STK_OK);
    CHECK_EQ(ops_read(&ops, "CenterCrop(8) | ToTensor | Normalize", STK_BFLOAT16, 0, 0, &e), STK_OK);
    CHECK_EQ(ops_read(&ops, "CenterCrop(8) | ToDtype(half, scale=True)", STK_FLOAT16, 0, 0, &e), STK_OK);
    CHECK_EQ(ops.unit, UNIT_TIMES);
    CHECK_EQ(ops_read(&ops, "CenterCrop(8) | ToTensor | ToDtype(float32)", STK_FLOAT32, 0, 0, &e), STK_OK);
    CHECK_EQ(ops.unit, UNIT_DIVIDE);
}

static void sizes_are_known(void)
{
    static const struct {
        const char *text;
        int w, h, channels;
    } cases[] = {
        {"RandomResizedCrop((3, 4))", 4, 3, 3},
        {"CenterCrop((30, 20)) | Resize(10)", 10, 15, 3},
        {"CenterCrop((20, 30)) | Resize(10) | Pad((1, 2))", 17, 14, 3},
        {"CenterCrop((20, 300)) | Resize(10, max_size=31) | Grayscale", 31, 2, 1},
        {"Resize(99) | Resize((5, 6))", 6, 5, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ops ops;
        CHECK_EQ(ops_read(&ops, cases[i].text, STK_UINT8, 0, 0, NULL), STK_OK);
        CHECK_EQ(ops.w, cases[i].w);
        CHECK_EQ(ops.h, cases[i].h);
        CHECK_EQ(ops.channels, cases[i].channels);
    }
}

static void limits(void)
{
    struct ops ops;
    stk_error e = {0};
    char text[2 * OPS_TEXT] = "CenterCrop(8)";
    for (int i = 0; i < OPS_MAX; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "|ToImage");
    CHECK_EQ(ops_read(&ops, text, STK_UINT8, 0, 0, &e), STK_EUSAGE);
    CHECK(strstr(e.text, "more than 64 ops") != NULL);
    memset(text, ' ', sizeof text - 1);
    text[sizeof text - 1] = 0;
    CHECK_EQ(ops_read(&ops, text, STK_UINT8, 0, 0, &e), STK_EUSAGE);
    CHECK(strstr(e.text, "longer than") != NULL);
    /* numbers and words of any length */
    memset(text, '1', 3000);
    memcpy(text, "CenterCrop(", 11);
    text[3000] = 0;
    CHECK_EQ(ops_read(&ops, text, STK_UINT8, 0, 0, &e), STK_EUSAGE);
    memset(text + 11, 'x', 2900);
    CHECK_EQ(ops_read(&ops, text, STK_UINT8, 0, 0, &e), STK_EUSAGE);
    memset(text, 'x', 3000);
    CHECK_EQ(ops_read(&ops, text, STK_UINT8, 0, 0, &e), STK_EUSAGE);
    CHECK_EQ(ops_read(&ops, NULL, STK_UINT8, 0, 0, &e), STK_EUSAGE);
}

/* Each use of a name is counted, so that each draws its own random numbers. */
static void counts_uses(void)
{
    struct ops ops;
    CHECK_EQ(
        ops_read(&ops, "RandomCrop(9) | RandomHorizontalFlip | RandomCrop(8) | RandomCrop(7)", STK_UINT8, 0, 0, NULL),
        STK_OK);
    CHECK_EQ(ops.op[0].nth, 0);
    CHECK_EQ(ops.op[1].nth, 0);
    CHECK_EQ(ops.op[2].nth, 1);
    CHECK_EQ(ops.op[3].nth, 2);
}

static void locale_has_no_say(void)
{
    struct ops ops;
    char text[OPS_TEXT];
    if (!comma_enter())
        return;
    CHECK_EQ(ops_read(&ops, "CenterCrop(8) | RandomHorizontalFlip(0.25)", STK_UINT8, 0, 0, NULL), STK_OK);
    CHECK(ops.op[1].arg[0].v[0] == 0.25);
    ops_write(&ops, text, sizeof text);
    CHECK(strstr(text, "p=0.25)") != NULL);
    comma_leave();
}

int main(int argc, char **argv)
{
    temp_begin();
    atexit(temp_end);
    TESTS(T(reads_and_writes), T(errors_point_at_the_place), T(types_must_agree), T(sizes_are_known), T(limits),
          T(counts_uses), T(locale_has_no_say))
}
