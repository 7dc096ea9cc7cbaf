/* lnorm at work: three small layer norms to read, thirteen real ones to measure, and a speed.
 *
 *     demo [tests/data/minilm_layer_norms.bin]
 *
 * Every value is judged by exact arithmetic (exact.h). The exit status is 0 only if all that is printed holds. */
#if defined __unix__ || defined __APPLE__
#define _POSIX_C_SOURCE 200809L
#include <unistd.h>
#endif

#include "exact.h"
#include "lnorm.h"
#include "recording.h"

#include <inttypes.h>
#include <stdarg.h>
#include <time.h>

static const char default_path[] = "tests/data/minilm_layer_norms.bin";

/* What lnorm promises: half an ulp for the last rounding, the rest for the f64 arithmetic before it. */
static const double promise_ulp = 0.501;

static int failures;
static const char *bold = "", *good = "", *bad = "", *plain = "";

static void use_colours_on_a_terminal(void) {
#if defined __unix__ || defined __APPLE__
    const char *kind = getenv("TERM");
    if (!isatty(STDOUT_FILENO) || getenv("NO_COLOR") || !kind || strcmp(kind, "dumb") == 0)
        return;
    bold = "\033[1m", good = "\033[32m", bad = "\033[33m", plain = "\033[0m";
#endif
}

static void fail(const char *format, ...) {
    va_list arguments;
    fflush(stdout);
    fputs("demo: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    failures++;
}

/* The formula as it is usually written, all in f32. weight and bias may be NULL. */
static void plain_formula(float *y, const float *x, const float *weight, const float *bias, int64_t rows, int64_t cols,
                          float eps) {
    for (; rows > 0; rows--, x += cols, y += cols) {
        float sum = 0.0f, squares = 0.0f;
        for (int64_t i = 0; i < cols; i++)
            sum += x[i];
        float mean = sum / (float)cols;
        for (int64_t i = 0; i < cols; i++)
            squares += (x[i] - mean) * (x[i] - mean);
        float deviation = sqrtf(squares / (float)cols + eps);
        for (int64_t i = 0; i < cols; i++)
            y[i] = (x[i] - mean) / deviation * (weight ? weight[i] : 1.0f) + (bias ? bias[i] : 0.0f);
    }
}

/* What exact arithmetic says about one implementation. */
typedef struct score {
    int64_t values, correct, undecided;
    double worst_ulp;
} score;

static void score_value(score *score, const exact_value *value, float got) {
    exact_verdict verdict = exact_judge(value, got);
    double error = exact_error_ulp(value, got);
    score->values++;
    score->correct += verdict == EXACT_ROUNDED_CORRECTLY;
    score->undecided += verdict == EXACT_UNDECIDED;
    if (!(error <= score->worst_ulp)) /* a NaN is the worst, and stays it */
        score->worst_ulp = error;
}

static void score_add(score *total, const score *part) {
    total->values += part->values;
    total->correct += part->correct;
    total->undecided += part->undecided;
    if (!(part->worst_ulp <= total->worst_ulp))
        total->worst_ulp = part->worst_ulp;
}

static double percent(const score *score) {
    return 100.0 * (double)score->correct / (double)score->values;
}

static void check_promise(const char *what, const score *score) {
    if (!(score->worst_ulp <= promise_ulp))
        fail("%s: lnorm is off by %.4f ulp, promised are %.3f", what, score->worst_ulp, promise_ulp);
}

/* ------------------------------------------------------------------------------------------------------------------
 * 1. An input of shape [4, 2, 3]
 * ------------------------------------------------------------------------------------------------------------------ */

static const int64_t small_shape[3] = {4, 2, 3};
static const float small_x[24] = {1.4554f,  1.2151f,  0.1781f,  -0.8240f, 2.0534f,  -2.4673f, -0.8718f, 0.4519f,
                                  -0.7616f, 1.5570f,  0.9252f,  0.3837f,  0.4801f,  -0.5055f, 1.1929f,  -0.2375f,
                                  -1.8804f, -0.6529f, 1.4000f,  0.7979f,  0.3605f,  1.0065f,  0.1672f,  -0.5189f};

static void print_small_input(void) {
    for (int i = 0; i < 24; i++) {
        if (i % 6 == 0)
            printf("   x[%d]", i / 6);
        printf("%s %7.4f%s", i % 3 == 0 ? "  " : "", (double)small_x[i], i % 6 == 5 ? "\n" : "");
    }
}

/* Layer norm of small_x over the last `normalized_ndim` axes. */
static lnorm_status run_small(float *y, const int64_t *normalized_shape, int32_t normalized_ndim, int64_t *groups,
                              int64_t *group_size, lnorm_error *error) {
    lnorm_tensor x_tensor = lnorm_dense(small_x, LNORM_F32, 3, small_shape);
    lnorm_tensor y_tensor = lnorm_dense(y, LNORM_F32, 3, small_shape);
    lnorm_op op = LNORM_OP_INIT;
    lnorm_io io = LNORM_IO_INIT;
    lnorm_plan plan;
    op.normalized_shape = normalized_shape;
    op.normalized_ndim = normalized_ndim;
    io.x = &x_tensor;
    io.y = &y_tensor;
    lnorm_status status = lnorm_plan_init(&plan, &op, &io, error);
    if (status != LNORM_OK)
        return status;
    *groups = lnorm_plan_groups(&plan);
    *group_size = lnorm_plan_group_size(&plan);
    return lnorm_execute(&plan, &io, NULL);
}

/* Three neighbours of a result, the incorrectly rounded ones marked. */
static void print_three(const float *y, const exact_value *value) {
    for (int k = 0; k < 3; k++) {
        int correct = exact_judge(&value[k], y[k]) == EXACT_ROUNDED_CORRECTLY;
        printf(" %s%11.8f%c%s", correct ? "" : bad, (double)y[k], correct ? ' ' : '*', correct ? "" : plain);
    }
}

static void show_mode(const int64_t *normalized_shape, int32_t normalized_ndim, int64_t expected_groups) {
    float ours[24] = {0}, theirs[24];
    int64_t groups = 0, cols = 0;
    lnorm_error error = LNORM_ERROR_INIT;
    lnorm_status status = run_small(ours, normalized_shape, normalized_ndim, &groups, &cols, &error);
    if (status != LNORM_OK) {
        fail("layer norm of [4, 2, 3]: %s: %s", lnorm_status_string(status), error.message);
        return;
    }
    if (groups != expected_groups || cols != 24 / expected_groups) {
        fail("%" PRId64 " statistics of %" PRId64 " elements where %" PRId64 " are due", groups, cols, expected_groups);
        return;
    }
    plain_formula(theirs, small_x, NULL, NULL, groups, cols, 1e-5f);

    exact_value value[24];
    score score = {0};
    for (int64_t i = 0; i < 24; i++) {
        exact_row row = exact_statistics(small_x + i / cols * cols, cols, 1e-5);
        value[i] = exact_normalise(&row, small_x[i], 1.0f, 0.0f);
        score_value(&score, &value[i], ours[i]);
    }
    printf("\n   %snormalized_shape [", bold);
    for (int i = 0; i < normalized_ndim; i++)
        printf("%s%" PRId64, i ? ", " : "", normalized_shape[i]);
    printf("]: %" PRId64 " %s of %" PRId64 " elements%s\n", groups,
           groups == 1 ? "mean and variance," : "means and variances, each", cols, plain);
    printf("            %-41s%s\n", "lnorm", "plain formula in f32");
    for (int i = 0; i < 8; i++) {
        printf("   y[%d,%d]", i / 2, i % 2);
        print_three(ours + 3 * i, value + 3 * i);
        printf("  ");
        print_three(theirs + 3 * i, value + 3 * i);
        printf("\n");
    }
    check_promise("layer norm of [4, 2, 3]", &score);
}

static void show_refusal(void) {
    static const char expected[] =
        "Given normalized_shape=[2], expected input with shape [*, 2], but got input of size[4, 2, 3]";
    static const int64_t two[1] = {2};
    float y[24];
    int64_t groups, cols;
    lnorm_error error = LNORM_ERROR_INIT;
    lnorm_status status = run_small(y, two, 1, &groups, &cols, &error);
    printf("\n   %sA normalized_shape that does not fit, [2], is refused (%s)%s\n   %s\n", bold,
           lnorm_status_string(status), plain, error.message);
    if (status != LNORM_SHAPE_MISMATCH || strcmp(error.message, expected) != 0)
        fail("the message should be: %s", expected);
}

static void show_modes(void) {
    printf("%s1. An input of shape [4, 2, 3], eps 1e-5%s\n\n", bold, plain);
    print_small_input();
    show_mode(small_shape + 2, 1, 8);
    show_mode(small_shape + 1, 2, 4);
    show_mode(small_shape, 3, 1);
    printf("\n   * not the float nearest to the exact value\n");
    show_refusal();
}

/* ------------------------------------------------------------------------------------------------------------------
 * 2. The layer norms of a real model
 * ------------------------------------------------------------------------------------------------------------------ */

static void score_norm(const recorded_norm *norm, double eps, const float *ours, const float *theirs, score *our_score,
                       score *their_score) {
    for (int64_t r = 0; r < norm->rows; r++) {
        exact_row row = exact_statistics(norm->x + r * norm->cols, norm->cols, eps);
        for (int64_t c = 0; c < norm->cols; c++) {
            int64_t i = r * norm->cols + c;
            exact_value value = exact_normalise(&row, norm->x[i], norm->weight[c], norm->bias[c]);
            score_value(our_score, &value, ours[i]);
            score_value(their_score, &value, theirs[i]);
        }
    }
}

static void print_scores(const char *name, const score *ours, const score *theirs) {
    printf("   %-44s %8.4f %9.2f   %s%8.3f %%%s %8.1f %%\n", name, ours->worst_ulp, theirs->worst_ulp, good,
           percent(ours), plain, percent(theirs));
}

static void measure_norm(const recorded_norm *norm, double eps, score *our_total, score *their_total) {
    size_t bytes = (size_t)(norm->rows * norm->cols) * sizeof(float);
    float *ours = malloc(bytes), *theirs = malloc(bytes);
    score our_score = {0}, their_score = {0};
    lnorm_status status = LNORM_OUT_OF_MEMORY;
    if (ours && theirs)
        status = lnorm_layer_norm_f32(ours, NULL, NULL, norm->x, norm->weight, norm->bias, norm->rows, norm->cols, eps);
    if (status == LNORM_OK) {
        plain_formula(theirs, norm->x, norm->weight, norm->bias, norm->rows, norm->cols, (float)eps);
        score_norm(norm, eps, ours, theirs, &our_score, &their_score);
        print_scores(norm->name, &our_score, &their_score);
        check_promise(norm->name, &our_score);
        score_add(our_total, &our_score);
        score_add(their_total, &their_score);
    } else {
        fail("%s: %s", norm->name, lnorm_status_string(status));
    }
    free(ours);
    free(theirs);
}

static void measure_norms(recording *recording, const char *path) {
    score ours = {0}, theirs = {0};
    printf("   %-44s %-18s   %s\n", "", "largest error, ulp", "correctly rounded");
    printf("   %s%-44s %8s %9s   %10s %10s%s\n", bold, "layer norm", "lnorm", "formula", "lnorm", "formula", plain);
    for (uint32_t i = 0; i < recording->norms; i++) {
        recorded_norm norm;
        const char *problem = recording_next(recording, &norm);
        if (problem) {
            fail("%s %s", path, problem);
            return;
        }
        measure_norm(&norm, recording->eps, &ours, &theirs);
        free(norm.weight);
    }
    if (ours.values == 0) {
        fail("%s: nothing was measured", path);
        return;
    }
    print_scores("all", &ours, &theirs);
    printf("\n   %" PRId64 " values each, judged in double-double arithmetic (%" PRId64 " too close to call)\n",
           ours.values, ours.undecided + theirs.undecided);
    if (ours.undecided + theirs.undecided > 0)
        fail("%s: roundings that could not be decided; exact.h expects none", path);
    printf("   ulp: that of max(|y|, |weight|, |weight*xhat|, |bias|); formula: plain loops in f32\n");
}

static void show_model(const char *path) {
    recording recording = {0};
    printf("\n%s2. The layer norms of all-MiniLM-L6-v2 on recorded English text: 384 columns, eps 1e-12%s\n\n", bold,
           plain);
    const char *problem = recording_open(&recording, path);
    if (problem)
        fail("%s %s (give the path of minilm_layer_norms.bin as the argument)", path, problem);
    else
        measure_norms(&recording, path);
    recording_close(&recording);
}

/* ------------------------------------------------------------------------------------------------------------------
 * 3. Speed
 * ------------------------------------------------------------------------------------------------------------------ */

enum { SPEED_ROWS = 64, SPEED_COLS = 768, SPEED_VALUES = SPEED_ROWS * SPEED_COLS, SPEED_ROUNDS = 300, SPEED_CALLS = 8 };

typedef struct speed_buffers {
    float x[SPEED_VALUES], y[SPEED_VALUES], weight[SPEED_COLS], bias[SPEED_COLS];
} speed_buffers;

static void speed_lnorm(speed_buffers *b) {
    lnorm_layer_norm_f32(b->y, NULL, NULL, b->x, b->weight, b->bias, SPEED_ROWS, SPEED_COLS, 1e-5);
}

static void speed_formula(speed_buffers *b) {
    plain_formula(b->y, b->x, b->weight, b->bias, SPEED_ROWS, SPEED_COLS, 1e-5f);
}

static void speed_memcpy(speed_buffers *b) {
    memcpy(b->y, b->x, sizeof b->y);
}

static double seconds_now(void) {
    struct timespec now;
#if defined CLOCK_MONOTONIC
    clock_gettime(CLOCK_MONOTONIC, &now);
#else
    timespec_get(&now, TIME_UTC);
#endif
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void fill_speed_buffers(speed_buffers *b) {
    uint32_t state = 1;
    for (int i = 0; i < SPEED_VALUES; i++) {
        state = state * 1664525u + 1013904223u;
        b->x[i] = (float)(state >> 8) * 0x1p-23f - 1.0f;
    }
    for (int i = 0; i < SPEED_COLS; i++) {
        b->weight[i] = 1.0f + b->x[i] * 0.25f;
        b->bias[i] = b->x[SPEED_COLS + i];
    }
}

/* The best of many short rounds in which the three take turns: what else runs on the machine then hits all alike. */
static void show_speed(void) {
    void (*volatile run[3])(speed_buffers *) = {speed_memcpy, speed_lnorm, speed_formula}; /* calls stay calls */
    double best[3] = {HUGE_VAL, HUGE_VAL, HUGE_VAL};
    speed_buffers *buffers = malloc(sizeof *buffers);
    if (!buffers) {
        fail("no memory for the speed");
        return;
    }
    fill_speed_buffers(buffers);
    for (int round = 0; round < SPEED_ROUNDS; round++)
        for (int i = 0; i < 3; i++) {
            double start = seconds_now();
            for (int call = 0; call < SPEED_CALLS; call++)
                run[i](buffers);
            double seconds = (seconds_now() - start) / SPEED_CALLS;
            if (seconds > 0.0 && seconds < best[i])
                best[i] = seconds;
        }
    free(buffers);
    double gigabytes = 2e-9 * SPEED_VALUES * sizeof(float); /* read once, written once */
    printf("\n%s3. Speed: %d x %d f32, one thread, bytes read and written%s\n\n", bold, SPEED_ROWS, SPEED_COLS, plain);
    printf("   lnorm %s%.1f GB/s%s (%.2f of memcpy's %.1f, the limit), plain formula %.1f GB/s\n", good,
           gigabytes / best[1], plain, best[0] / best[1], gigabytes / best[0], gigabytes / best[2]);
}

int main(int argc, char **argv) {
    use_colours_on_a_terminal();
    if (!lnorm_isa()) {
        fail("LNORM_ISA=%s is not available on this machine or in this build", getenv("LNORM_ISA"));
        return EXIT_FAILURE;
    }
    printf("%slnorm %s%s, instruction set %s\n\n", bold, lnorm_version(), plain, lnorm_isa());
    show_modes();
    show_model(argc > 1 ? argv[1] : default_path);
    show_speed();
    if (failures)
        printf("\n%s%d of the checks above failed.%s\n", bad, failures, plain);
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
