/* The lines of same_bits.c at the thresholds of the arithmetic, and of parameters that broadcast over channels; part of
 * that file. */

/* One row of every kind of limit_value, in the accurate and the fast arithmetic. */
static void list_limits(void) {
    for (int which = 0; which < MIXES; which++)
        for (int kind = LNORM_LAYER_NORM; kind <= LNORM_RMS_NORM; kind++)
            for (int pass = LNORM_FORWARD; pass <= LNORM_FORWARD_MODE; pass++) {
                operation o = rows_operation((lnorm_kind)kind, (lnorm_pass)pass, which, LIMIT_KINDS, 67, LIMITS);
                run(&o);
                o.op.arithmetic = LNORM_FAST;
                o.rows_of_level1 = 0;
                if (pass <= LNORM_BACKWARD && which > 0)
                    run(&o);
            }
}

/* The narrow arithmetic before its last rounding, which hides the order of sums and which path was taken: every output
 * is f64, and so there is no weight. */
static void list_unrounded(void) {
    static const mix unrounded[] = {{"f32-f64", F32, F64, F64, F64, F64}, {"bf16-f64", BF16, F64, F64, F64, F64}};
    static const struct {
        int64_t rows, cols;
        int fill;
    } shapes[] = {{LIMIT_KINDS, 67, LIMITS}, {FINITE_KINDS, 67, HARD}, {5, 16, NORMAL}, {130, 17, NORMAL},
                  {3, 1100, NORMAL}, {1, 4500, NORMAL}};
    for (int which = 0; which < 2; which++)
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
            for (int kind = LNORM_LAYER_NORM; kind <= LNORM_RMS_NORM; kind++)
                for (int pass = LNORM_FORWARD; pass <= LNORM_DOUBLE_BACKWARD; pass++) {
                    operation o = rows_operation((lnorm_kind)kind, (lnorm_pass)pass, 0, shapes[i].rows, shapes[i].cols,
                                                 shapes[i].fill);
                    o.mix = &unrounded[which];
                    o.absent |= 1u << WEIGHT_ROLE | 1u << BIAS_ROLE;
                    o.rows_of_level1 = 0;
                    o.note = "plain";
                    run(&o);
                    o.op.arithmetic = LNORM_FAST;
                    if (pass <= LNORM_BACKWARD)
                        run(&o);
                }
}

/* Statistics that are not those of x: xhat far beyond what computed ones allow. */
static void list_foreign_statistics(void) {
    static const int wanted[] = {0, 1, 6};
    for (int i = 0; i < 3; i++)
        for (int pass = LNORM_FORWARD; pass <= LNORM_FORWARD_MODE; pass++)
            for (int way = 0; way < 3; way++) {
                operation o = rows_operation(LNORM_LAYER_NORM, (lnorm_pass)pass, wanted[i], LIMIT_KINDS, 19, LIMITS);
                o.op.statistics = way == 0 ? LNORM_SAVED : LNORM_CONSTANT;
                o.variance_given = way == 2;
                o.note = way == 2 ? "variance" : NULL;
                o.rows_of_level1 = 0;
                run(&o);
            }
}

/* Weight [3,1,1,1] (per sample) with bias [8,1,1] (per channel). */
static void list_channel_broadcast(void) {
    static const struct {
        lnorm_kind kind;
        int64_t groups, group_size;
    } kinds[] = {{LNORM_GROUP_NORM, 2, 100}, {LNORM_INSTANCE_NORM, 0, 25}, {LNORM_BATCH_NORM, 0, 75}};
    for (int i = 0; i < 3; i++) {
        operation o = {.op = LNORM_OP_INIT, .mix = f32_only, .ndim = 4, .shape = {3, 8, 5, 5}};
        o.op.kind = kinds[i].kind;
        o.op.groups = kinds[i].groups;
        o.op.affine_broadcast = 1;
        o.group_size = kinds[i].group_size;
        o.weight_ndim = 4;
        o.bias_ndim = 3;
        o.weight_shape[0] = 3;
        o.bias_shape[0] = 8;
        o.weight_shape[1] = o.weight_shape[2] = o.weight_shape[3] = o.bias_shape[1] = o.bias_shape[2] = 1;
        o.note = "weight [3,1,1,1] bias [8,1,1]";
        run_passes(o, LNORM_BACKWARD + 1);
    }
}
