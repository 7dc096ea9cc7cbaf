/* The lines of same_bits.c for the fast arithmetic; part of that file. */

static operation fast_rows(int which, lnorm_kind kind, lnorm_pass pass, int64_t rows, int64_t cols, int fill) {
    operation o = rows_operation(kind, pass, which, rows, cols, fill);
    o.op.arithmetic = LNORM_FAST;
    o.rows_of_level1 = 0;
    return o;
}

static void run_fast_rows(int which, int64_t rows, int64_t cols, int fill) {
    for (int kind = LNORM_LAYER_NORM; kind <= LNORM_RMS_NORM; kind++)
        for (int pass = LNORM_FORWARD; pass <= LNORM_BACKWARD; pass++) {
            operation o = fast_rows(which, (lnorm_kind)kind, (lnorm_pass)pass, rows, cols, fill);
            run(&o);
        }
}

/* Row lengths around a run of 256, its rows of 32, and a block of 4096; row counts around groups of 8 and blocks of 64.
 * Wide problems, double backward and forward mode have no fast arithmetic: one line each. */
static void list_fast_rows(void) {
    static const int64_t shapes[][2] = {{9, 1},   {9, 3},   {9, 16},  {9, 17},   {9, 31},   {9, 32},   {9, 33},
                                        {9, 64},  {9, 67},  {4, 255}, {4, 256},  {4, 257},  {4, 768},  {4, 1000},
                                        {64, 3},  {65, 17}, {200, 5}, {2, 4097}, {2, 8500}, {0, 5},    {3, 0}};
    for (int which = 1; which < SWEPT; which++)
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
            run_fast_rows(which, shapes[i][0], shapes[i][1], NORMAL);
            if (shapes[i][1] <= 1000 && shapes[i][0] <= 9)
                run_fast_rows(which, shapes[i][0], shapes[i][1], HARD);
        }
    for (int which = 0; which < MIXES; which++) {
        run_fast_rows(which, 9, 35, POISON);
        run_fast_rows(which, 9, 67, NORMAL);
        for (int pass = LNORM_DOUBLE_BACKWARD; pass <= LNORM_FORWARD_MODE; pass++) {
            operation o = fast_rows(which, LNORM_LAYER_NORM, (lnorm_pass)pass, 9, 67, NORMAL);
            run(&o);
        }
    }
}

static void list_fast_options(void) {
    for (int which = 1; which < MIXES; which++)
        for (int pass = LNORM_FORWARD; pass <= LNORM_BACKWARD; pass++)
            for (int option = 0; option < 6; option++) {
                static const char *const notes[] = {"saved", "constant variance", "no weight", "1 + weight accumulate",
                                                    "only dweight", "eps 1e-300"};
                operation o = fast_rows(which, LNORM_LAYER_NORM, (lnorm_pass)pass, 11, 67, NORMAL);
                o.op.statistics = option == 0 ? LNORM_SAVED : option == 1 ? LNORM_CONSTANT : LNORM_COMPUTED;
                o.variance_given = option == 1;
                o.absent = option == 2 ? 1u << WEIGHT_ROLE : option == 4 ? 1u << DX | 1u << DBIAS | 1u << BIAS_ROLE : 0;
                o.op.weight_offset = o.op.accumulate = option == 3;
                o.op.eps = option == 5 ? 1e-300 : 1e-5;
                o.note = notes[option];
                run(&o);
            }
}

static void list_fast_tensors(void) {
    static const int64_t middle[] = {-2};
    operation o = {.op = LNORM_OP_INIT, .mix = f32_only, .ndim = 4, .shape = {3, 5, 7, 4}, .group_size = 7};
    o.op.arithmetic = LNORM_FAST;
    o.op.axes = middle;
    o.op.axes_count = o.weight_ndim = o.bias_ndim = 1;
    o.weight_shape[0] = o.bias_shape[0] = 7;
    o.note = "axis -2";
    run_passes(o, LNORM_BACKWARD + 1);

    operation channels = {.op = LNORM_OP_INIT, .ndim = 4, .shape = {3, 8, 5, 7}, .weight_ndim = 1, .bias_ndim = 1};
    channels.op.arithmetic = LNORM_FAST;
    channels.weight_shape[0] = channels.bias_shape[0] = 8;
    channels.op.groups = 2;
    channels.op.kind = LNORM_GROUP_NORM;
    channels.group_size = 140;
    run_passes(channels, LNORM_BACKWARD + 1);
    channels.op.kind = LNORM_BATCH_NORM;
    channels.group_size = 105;
    run_passes(channels, LNORM_BACKWARD + 1);
}
