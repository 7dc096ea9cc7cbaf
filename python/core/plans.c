/* Plans of operations on dense tensors. To make one takes about as long as a small operation does: they are kept, under
 * the interpreter's lock. */
#include "core.h"

#include <string.h>

enum { PLANS = 64 /* 2^6 */, KEY_WORDS = 64, OP_WORDS = sizeof(lnorm_op) / sizeof(int64_t) };
_Static_assert(sizeof(lnorm_op) % sizeof(int64_t) == 0, "an op is compared word by word, without padding");

/* Everything that a plan of row-major tensors depends on. */
typedef struct plan_key {
    int64_t words[KEY_WORDS];
    int count; /* 0: of no plan */
} plan_key;

static struct kept_plan {
    plan_key key;
    lnorm_plan plan;
} kept[PLANS];

static int add_tensor(plan_key *key, const lnorm_tensor *tensor) {
    if (key->count + 1 + (tensor ? tensor->ndim : 0) > KEY_WORDS)
        return -1;
    key->words[key->count++] =
        tensor ? 1 + tensor->ndim + ((int64_t)tensor->dtype.code << 8) + ((int64_t)tensor->dtype.bits << 16) : 0;
    for (int32_t i = 0; tensor && i < tensor->ndim; i++)
        key->words[key->count++] = tensor->shape[i];
    return 0;
}

/* -1 where it has no room. normalized_shape is x's last extents. */
static int make_key(plan_key *key, const lnorm_op *op, const lnorm_io *io) {
    const lnorm_tensor *tensors[] = {io->x,  io->weight, io->bias,    io->y,           io->mean,       io->rstd, io->dy,
                                     io->dx, io->dweight, io->dbias, io->running_mean, io->running_var, io->variance};
    lnorm_op values = *op;
    values.normalized_shape = NULL;
    memcpy(key->words, &values, sizeof values);
    key->count = OP_WORDS;
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        if (add_tensor(key, tensors[i]))
            return -1;
    return 0;
}

static struct kept_plan *place_of(const plan_key *key) {
    uint64_t mixed = 0;
    for (int i = 0; i < key->count; i++)
        mixed = (mixed ^ (uint64_t)key->words[i]) * UINT64_C(0x9E3779B97F4A7C15);
    return &kept[mixed >> 58];
}

static int is_of(const struct kept_plan *plan, const plan_key *key) {
    return plan->key.count == key->count &&
           !memcmp(plan->key.words, key->words, (size_t)key->count * sizeof *key->words);
}

int run_dense_operation(const lnorm_op *op, lnorm_io *io, int64_t elements, workers who) {
    plan_key key;
    struct kept_plan *found;
    lnorm_plan copy;
    if (make_key(&key, op, io))
        return run_operation(op, io, who);
    found = place_of(&key);
    if (!is_of(found, &key)) {
        lnorm_error error = LNORM_ERROR_INIT;
        found->key.count = 0;
        if (lnorm_plan_init(&found->plan, op, io, &error)) {
            raise_status(error.status, error.message);
            return -1;
        }
        found->key = key;
    }
    if (elements < KEEP_LOCK_BELOW)
        return run_plan_by(&found->plan, io, elements, who);
    copy = found->plan; /* for the time without the lock */
    return run_plan_by(&copy, io, elements, who);
}
