/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train.c -- trains the network of net.c on a folder of photos.
 *
 *     train photos/                        one epoch, fed by Stoker
 *     train photos/ --epochs 5 --threads 2 --batch 32
 *     train photos/ --naive "python3 bench/naive.py photos/ --serve --size 64 --batch-size 32"
 *     train --check-gradients              compares the gradients with finite differences
 *
 *     cc -O3 train.c net.c -lm $(pkg-config --cflags --libs stoker) -o train     # `make demo` builds build/train
 *
 * After every epoch, it prints the loss, the accuracy, images/s, and the time that it waited for data (the time inside
 * stk_next). With --naive, another program makes each batch when it is requested, as a loop without a loader does.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <stoker.h>

#include "net.h"

enum { PIXELS = NET_SIDE * NET_SIDE * 3 };
static const float RATE = 0.05f;

struct options {
    const char *folder, *naive;
    long epochs, threads, batch;
};

/* A batch, from Stoker or from the other program. */
struct batch {
    int64_t n;
    const float *images;
    const int64_t *labels;
    stk_batch *owner; /* NULL: from the other program */
};

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ------------------------------------------------------------------ fed by Stoker */

static int loader_open(stk_loader **loader, const struct options *o)
{
    const stk_options s = {.source = o->folder,
                           .ops = "RandomResizedCrop(64) | RandomHorizontalFlip | Normalize",
                           .layout = STK_NHWC,
                           .batch_size = o->batch,
                           .threads = (int)o->threads,
                           .on_error = STK_SKIP,
                           .shuffle = 1};
    stk_error e;
    const int rc = stk_open(loader, &s, &e);
    if (rc != STK_OK)
        fprintf(stderr, "train: %s\n", e.text);
    return rc;
}

static int loader_next(stk_loader *loader, struct batch *b)
{
    stk_error e;
    const int rc = stk_next(loader, &b->owner, &e);
    if (rc == STK_OK)
        *b = (struct batch){stk_samples(b->owner), stk_field(b->owner, "image")->data,
                            stk_field(b->owner, "label")->data, b->owner};
    else if (rc != STK_END)
        fprintf(stderr, "train: %s\n", e.text);
    return rc;
}

/* ------------------------------------------------------------------ fed by another program */

/*
 * The program first writes the number of classes. A byte on its stdin requests a batch. It then writes the number of
 * images (0: the epoch is over), their labels, and their pixels. All numbers are int64; pixels are float32,
 * 64 x 64 x 3 per image.
 */
struct pipe {
    int socket;
    pid_t child;
    int64_t n_classes, room;
    float *images;
    int64_t *labels;
};

static int receive(int fd, void *to, size_t n)
{
    for (char *p = to; n;) {
        const ssize_t got = read(fd, p, n);
        if (got <= 0)
            return -1;
        p += got;
        n -= (size_t)got;
    }
    return 0;
}

static int pipe_open(struct pipe *p, const struct options *o)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        return -1;
    p->child = fork();
    if (p->child == 0) {
        dup2(ends[1], STDIN_FILENO);
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl("/bin/sh", "sh", "-c", o->naive, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    p->socket = ends[0];
    p->room = o->batch;
    p->images = malloc((size_t)o->batch * PIXELS * sizeof *p->images);
    p->labels = malloc((size_t)o->batch * sizeof *p->labels);
    if (p->child < 0 || !p->images || !p->labels)
        return -1;
    return receive(p->socket, &p->n_classes, sizeof p->n_classes);
}

static int pipe_next(struct pipe *p, struct batch *b)
{
    int64_t n;
    if (write(p->socket, "?", 1) != 1 || receive(p->socket, &n, sizeof n) != 0 || n < 0 || n > p->room ||
        receive(p->socket, p->labels, (size_t)n * sizeof *p->labels) != 0 ||
        receive(p->socket, p->images, (size_t)n * PIXELS * sizeof *p->images) != 0) {
        fprintf(stderr, "train: the --naive program did not send a batch of at most %lld images\n", (long long)p->room);
        return STK_EIO;
    }
    *b = (struct batch){n, p->images, p->labels, NULL};
    return n ? STK_OK : STK_END;
}

static void pipe_close(struct pipe *p)
{
    if (p->child > 0) {
        close(p->socket);
        waitpid(p->child, NULL, 0);
    }
    free(p->images);
    free(p->labels);
}

/* ------------------------------------------------------------------ training */

struct tally {
    int64_t images, right;
    double loss, waited_s;
};

static void train_batch(struct net *net, const struct batch *b, struct tally *t)
{
    for (int64_t i = 0; i < b->n; i++) {
        const float *image = b->images + i * PIXELS;
        const int label = (int)b->labels[i];
        bool right;
        t->loss += net_forward(net, image, label, &right);
        t->right += right;
        net_backward(net, image, label);
    }
    t->images += b->n;
    if (b->n)
        net_step(net, b->n, RATE);
}

/* Trains one epoch. Returns STK_END on success. */
static int train_epoch(struct net *net, stk_loader *loader, struct pipe *other, struct tally *t)
{
    for (;;) {
        struct batch b;
        const double asked = seconds();
        const int rc = loader ? loader_next(loader, &b) : pipe_next(other, &b);
        t->waited_s += seconds() - asked;
        if (rc != STK_OK)
            return rc;
        train_batch(net, &b, t);
        stk_release(b.owner);
    }
}

static void report(long epoch, const struct tally *t, double took)
{
    const double n = t->images ? (double)t->images : 1;
    printf("epoch %ld  loss %.4f  accuracy %4.1f %%  %lld images in %.1f s: %.0f images/s, waited %.2f s (%.0f %%) for "
           "data\n",
           epoch, t->loss / n, 100.0 * (double)t->right / n, (long long)t->images, took, (double)t->images / took,
           t->waited_s, 100 * t->waited_s / took);
}

static int train(const struct options *o)
{
    stk_loader *loader = NULL;
    struct pipe other = {0};
    struct net net = {0};
    int rc = 1;
    if (o->naive && pipe_open(&other, o) != 0) {
        fprintf(stderr, "train: cannot run the --naive program\n");
        goto done;
    }
    if (!o->naive && loader_open(&loader, o) != STK_OK)
        goto done;
    const int n_classes = o->naive ? (int)other.n_classes : stk_source_n_classes(stk_loader_source(loader));
    if (n_classes < 1 || net_init(&net, n_classes, 1) != 0) {
        fprintf(stderr, "train: FOLDER must contain one folder per class\n");
        goto done;
    }
    for (long epoch = 0; epoch < o->epochs; epoch++) {
        struct tally t = {0};
        const double begun = seconds();
        if (train_epoch(&net, loader, &other, &t) != STK_END)
            goto done;
        report(epoch, &t, seconds() - begun);
    }
    rc = 0;
done:
    net_done(&net);
    pipe_close(&other);
    stk_close(loader);
    return rc;
}

/* ------------------------------------------------------------------ checking the gradients */

/* Returns the largest relative difference between the gradients of one layer and central differences. */
static double gradient_error(struct net *net, struct layer *l, const float *image, int label)
{
    double worst = 0;
    const size_t step = l->n_params / 16 + 1;
    for (size_t i = 0; i < l->n_params; i += step) {
        const float kept = l->w[i], delta = 1e-2f;
        bool right;
        l->w[i] = kept + delta;
        const double up = net_forward(net, image, label, &right);
        l->w[i] = kept - delta;
        const double down = net_forward(net, image, label, &right);
        l->w[i] = kept;
        const double slope = (up - down) / (2 * (double)delta), given = (double)l->grad[i];
        worst = fmax(worst, fabs(slope - given) / fmax(0.05, fabs(slope) + fabs(given)));
    }
    return worst;
}

static int check_gradients(void)
{
    static float image[PIXELS];
    for (int i = 0; i < PIXELS; i++)
        image[i] = sinf(0.37f * (float)i) + 0.5f * cosf(0.011f * (float)i);
    struct net net;
    bool right;
    if (net_init(&net, 5, 1) != 0)
        return net_done(&net), 1;
    net_forward(&net, image, 3, &right);
    net_backward(&net, image, 3);
    int bad = 0;
    for (int i = 0; i < NET_LAYERS; i++) {
        if (!net.layers[i].n_params)
            continue;
        const double error = gradient_error(&net, &net.layers[i], image, 3);
        printf("layer %d: %6zu parameters, gradients within %.3f %%\n", i, net.layers[i].n_params, 100 * error);
        bad += error > 0.03;
    }
    net_done(&net);
    return bad ? 1 : 0;
}

/* ------------------------------------------------------------------ options */

static int usage(void)
{
    fprintf(stderr, "usage: train FOLDER [--epochs N] [--threads N] [--batch N] [--naive COMMAND]\n"
                    "       train --check-gradients\n");
    return 2;
}

static int number(const char *text, long least, long *out)
{
    char *end;
    *out = strtol(text ? text : "", &end, 10);
    return text && *text && !*end && *out >= least && *out <= 1000000 ? 0 : -1;
}

int main(int argc, char **argv)
{
    struct options o = {.epochs = 1, .batch = 32};
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        int bad = 0;
        if (strcmp(a, "--check-gradients") == 0)
            return check_gradients();
        if (strcmp(a, "--epochs") == 0)
            bad = number(argv[++i], 1, &o.epochs);
        else if (strcmp(a, "--threads") == 0)
            bad = number(argv[++i], 0, &o.threads);
        else if (strcmp(a, "--batch") == 0)
            bad = number(argv[++i], 1, &o.batch);
        else if (strcmp(a, "--naive") == 0)
            bad = !(o.naive = argv[++i]);
        else if (*a == '-' || o.folder)
            bad = 1;
        else
            o.folder = a;
        if (bad)
            return usage();
    }
    return o.folder ? train(&o) : usage();
}
