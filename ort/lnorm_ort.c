/* liblnorm_ort: custom operators for ONNX Runtime. Domain "lnorm", LayerNormalization and RMSNormalization, with ONNX's
 * inputs, outputs and attributes (docs/onnx.md).
 *
 * An operator exists once for each set of element types: ONNX Runtime tells the types of outputs from such a list only.
 * Arrays are checked by lnorm_plan_init, whose messages say weight and bias for ONNX's Scale and B.
 */
#include "lnorm.h"

#include <math.h>
#include <onnxruntime_c_api.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* 1.17 is the first with KernelContext_ParallelFor. The structs of the API only grow at their ends, so that what is
 * compiled against any later header also runs in 1.17. */
enum { API_VERSION = 17 };
#if ORT_API_VERSION < 17
#error "onnxruntime_c_api.h: expected that of ONNX Runtime 1.17 or later"
#endif

/* Returns from the calling function, which returns a status, where `call` fails. */
#define TRY(call)                         \
    do {                                  \
        OrtStatus *try_status = (call);   \
        if (try_status) {                 \
            return try_status;            \
        }                                 \
    } while (0)

/* Set before ONNX Runtime can call any of the functions below: by RegisterCustomOps, always to the same. */
static _Atomic(const OrtApi *) runtime;

static const OrtApi *api(void) {
    return atomic_load_explicit(&runtime, memory_order_acquire);
}

/* ---- Operators --------------------------------------------------------------------------------------------------- */

enum { MAX_INPUTS = 3, MAX_OUTPUTS = 3 };

typedef struct norm_op {
    OrtCustomOp base; /* first: ONNX Runtime hands a pointer to it back */
    const char *name;
    lnorm_kind kind;
    size_t inputs, outputs;                 /* at most; two inputs and one output are required */
    ONNXTensorElementDataType x, parameter; /* of X; of Scale, B and Y. Mean and InvStdDev are f32 */
} norm_op;

/* What a node was given. Read only once it is created: any number of threads may run it. */
typedef struct norm_node {
    const norm_op *op;
    int64_t axis;
    double eps;
} norm_node;

typedef struct tensor {
    lnorm_tensor view;
    int64_t shape[LNORM_MAX_NDIM];
} tensor;

#if defined __GNUC__
__attribute__((format(printf, 2, 3)))
#endif
static OrtStatus *
refuse(const norm_op *op, const char *format, ...) {
    char message[700];
    int length = snprintf(message, sizeof message, "lnorm.%s: ", op->name);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message + length, sizeof message - (size_t)length, format, arguments);
    va_end(arguments);
    return api()->CreateStatus(ORT_INVALID_ARGUMENT, message);
}

static int succeeded(OrtStatus *status) {
    api()->ReleaseStatus(status);
    return !status;
}

/* ONNX's axis: the first of the normalised ones, negative from the end. */
static OrtStatus *first_axis(const norm_op *op, int64_t axis, size_t ndim, size_t *first) {
    const int64_t n = (int64_t)ndim;
    if (axis < -n || axis >= n) {
        return refuse(op, "axis: expected %lld to %lld for an X of %lld dimensions, got %lld", (long long)-n,
                      (long long)n - 1, (long long)n, (long long)axis);
    }
    *first = (size_t)(axis < 0 ? axis + n : axis);
    return NULL;
}

/* ---- Element types ----------------------------------------------------------------------------------------------- */

/* Of 0 bits for types that lnorm does not have: lnorm_plan_init refuses them. */
static lnorm_dtype dtype_of(ONNXTensorElementDataType type) {
    switch (type) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE: return LNORM_F64;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT: return LNORM_F32;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16: return LNORM_F16;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16: return LNORM_BF16;
    default: return LNORM_DTYPE(0, 0);
    }
}

/* ---- A node's attributes ----------------------------------------------------------------------------------------- */

/* A failed read does not say whether the attribute is missing, which is fine, or of another type, which is not. */
static OrtStatus *check_missing(const norm_op *op, const OrtKernelInfo *info, const char *name, const char *expected) {
    float number = 0;
    int64_t integer = 0;
    size_t size = 0;
    const char *found = NULL;
    if (succeeded(api()->KernelInfoGetAttribute_float(info, name, &number))) {
        found = "a float";
    } else if (succeeded(api()->KernelInfoGetAttribute_int64(info, name, &integer))) {
        found = "an integer";
    } else if (succeeded(api()->KernelInfoGetAttribute_string(info, name, NULL, &size))) {
        found = "a string";
    }
    return found ? refuse(op, "%s: expected an attribute of type %s, got %s", name, expected, found) : NULL;
}

static OrtStatus *read_integer(const norm_op *op, const OrtKernelInfo *info, const char *name, int64_t *value) {
    if (succeeded(api()->KernelInfoGetAttribute_int64(info, name, value))) {
        return NULL;
    }
    return check_missing(op, info, name, "integer");
}

static OrtStatus *read_number(const norm_op *op, const OrtKernelInfo *info, const char *name, float *value) {
    if (succeeded(api()->KernelInfoGetAttribute_float(info, name, value))) {
        return NULL;
    }
    return check_missing(op, info, name, "float");
}

static OrtStatusPtr ORT_API_CALL create_kernel(const OrtCustomOp *base, const OrtApi *same_api,
                                               const OrtKernelInfo *info, void **kernel) {
    (void)same_api;
    const norm_op *op = (const norm_op *)base;
    int64_t axis = -1, stash_type = 1;
    float epsilon = 1e-5f;
    TRY(read_integer(op, info, "axis", &axis));
    TRY(read_integer(op, info, "stash_type", &stash_type));
    TRY(read_number(op, info, "epsilon", &epsilon));
    if (stash_type != ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT) { /* numbered alike in ONNX */
        return refuse(op, "stash_type: expected 1 (float), got %lld", (long long)stash_type);
    }
    if (!(isfinite(epsilon) && epsilon >= 0)) {
        return refuse(op, "epsilon: expected a finite number of at least 0, got %g", (double)epsilon);
    }
    norm_node *node = malloc(sizeof *node);
    if (!node) {
        return api()->CreateStatus(ORT_FAIL, "lnorm: out of memory");
    }
    *node = (norm_node){op, axis, (double)epsilon};
    *kernel = node;
    return NULL;
}

static void ORT_API_CALL destroy_kernel(void *kernel) {
    free(kernel);
}

/* ---- Running ----------------------------------------------------------------------------------------------------- */

static OrtStatus *describe(const norm_node *node, const char *name, OrtValue *value, tensor *result) {
    OrtTensorTypeAndShapeInfo *info = NULL;
    ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    size_t ndim = 0;
    void *data = NULL;
    TRY(api()->GetTensorMutableData(value, &data));
    TRY(api()->GetTensorTypeAndShape(value, &info));
    OrtStatus *status = api()->GetTensorElementType(info, &type);
    status = status ? status : api()->GetDimensionsCount(info, &ndim);
    if (!status && ndim > LNORM_MAX_NDIM) {
        status = refuse(node->op, "%s: expected at most %d dimensions, got %zu", name, LNORM_MAX_NDIM, ndim);
    }
    status = status ? status : api()->GetDimensions(info, result->shape, ndim);
    api()->ReleaseTensorTypeAndShapeInfo(info);
    result->view = lnorm_dense(data, dtype_of(type), (int32_t)ndim, result->shape);
    return status;
}

static OrtStatus *get_input(const norm_node *node, OrtKernelContext *context, size_t index, const char *name,
                            tensor *result, const lnorm_tensor **place) {
    const OrtValue *value = NULL;
    size_t count = 0;
    TRY(api()->KernelContext_GetInputCount(context, &count));
    if (index < count) {
        TRY(api()->KernelContext_GetInput(context, index, &value));
    }
    if (value) {
        /* The API of 1.17 has no way to the data of a value that is const; nothing is written there. */
        TRY(describe(node, name, (OrtValue *)(uintptr_t)value, result));
        *place = &result->view;
    }
    return NULL;
}

static OrtStatus *get_output(const norm_node *node, OrtKernelContext *context, size_t index, const char *name,
                             const int64_t *shape, size_t ndim, tensor *result, const lnorm_tensor **place) {
    OrtValue *value = NULL;
    size_t count = 0;
    TRY(api()->KernelContext_GetOutputCount(context, &count));
    if (index < count) {
        TRY(api()->KernelContext_GetOutput(context, index, shape, ndim, &value));
    }
    if (value) {
        TRY(describe(node, name, value, result));
        *place = &result->view;
    }
    return NULL;
}

/* The tensors of a call. They point into themselves: not to be copied. */
typedef struct norm_call {
    tensor inputs[MAX_INPUTS], outputs[MAX_OUTPUTS];
    lnorm_io io;
    int64_t axes[LNORM_MAX_NDIM];
    lnorm_op op;
} norm_call;

static OrtStatus *collect(const norm_node *node, OrtKernelContext *context, norm_call *call) {
    static const char *const names[] = {"X", "Scale", "B"};
    const lnorm_tensor **inputs[] = {&call->io.x, &call->io.weight, &call->io.bias};
    for (size_t i = 0; i < node->op->inputs; i++) {
        TRY(get_input(node, context, i, names[i], &call->inputs[i], inputs[i]));
    }
    const size_t ndim = (size_t)call->inputs[0].view.ndim;
    size_t first = 0;
    TRY(first_axis(node->op, node->axis, ndim, &first));
    int64_t statistic[LNORM_MAX_NDIM];
    for (size_t i = 0; i < ndim; i++) {
        statistic[i] = i < first ? call->inputs[0].shape[i] : 1;
        if (i >= first) {
            call->axes[call->op.axes_count++] = (int64_t)i;
        }
    }
    TRY(get_output(node, context, 0, "Y", call->inputs[0].shape, ndim, &call->outputs[0], &call->io.y));
    if (node->op->outputs > 1) {
        TRY(get_output(node, context, 1, "Mean", statistic, ndim, &call->outputs[1], &call->io.mean));
        TRY(get_output(node, context, 2, "InvStdDev", statistic, ndim, &call->outputs[2], &call->io.rstd));
    }
    return NULL;
}

typedef struct job {
    void (*task)(void *argument, int64_t index);
    void *argument;
} job;

static void run_task(void *argument, size_t index) {
    const job *it = argument;
    it->task(it->argument, (int64_t)index);
}

/* An executor on the session's own threads (intra_op_num_threads). Where ONNX Runtime fails to share the tasks out they
 * run here, some of them perhaps again: a forward task writes the same results each time. */
static void parallel_for(void *context, int64_t count, void (*task)(void *argument, int64_t index), void *argument) {
    job it = {task, argument};
    if (succeeded(api()->KernelContext_ParallelFor(context, run_task, (size_t)count, 0, &it))) {
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        task(argument, i);
    }
}

static OrtStatusPtr ORT_API_CALL compute(void *kernel, OrtKernelContext *context) {
    const norm_node *node = kernel;
    norm_call call = {.io = LNORM_IO_INIT, .op = LNORM_OP_INIT};
    TRY(collect(node, context, &call));
    call.op.kind = node->op->kind;
    call.op.eps = node->eps;
    call.op.axes = call.axes;
    call.op.affine_broadcast = 1;

    lnorm_plan plan;
    lnorm_error error = LNORM_ERROR_INIT;
    lnorm_executor executor = LNORM_EXECUTOR_INIT;
    executor.context = context;
    executor.parallel_for = parallel_for;
    if (lnorm_plan_init(&plan, &call.op, &call.io, &error) != LNORM_OK) {
        return refuse(node->op, "%s", error.message);
    }
    /* Without memory for it the call is slower, its bits are the same. */
    const size_t workspace = lnorm_plan_workspace(&plan);
    call.io.workspace = workspace ? malloc(workspace) : NULL;
    call.io.workspace_size = call.io.workspace ? workspace : 0;
    lnorm_status status = lnorm_plan_check(&plan, &call.io, &error);
    if (status == LNORM_OK) {
        status = lnorm_execute(&plan, &call.io, &executor);
    }
    free(call.io.workspace);
    return status == LNORM_OK ? NULL
                              : refuse(node->op, "%s", error.message[0] ? error.message : lnorm_status_string(status));
}

/* ---- Registration ------------------------------------------------------------------------------------------------ */

static const char *ORT_API_CALL op_name(const OrtCustomOp *op) {
    return ((const norm_op *)op)->name;
}

static const char *ORT_API_CALL cpu(const OrtCustomOp *op) {
    (void)op;
    return NULL; /* means the CPU */
}

static ONNXTensorElementDataType ORT_API_CALL input_type(const OrtCustomOp *op, size_t index) {
    return index ? ((const norm_op *)op)->parameter : ((const norm_op *)op)->x;
}

static ONNXTensorElementDataType ORT_API_CALL output_type(const OrtCustomOp *op, size_t index) {
    return index ? ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT : ((const norm_op *)op)->parameter;
}

static size_t ORT_API_CALL input_count(const OrtCustomOp *op) {
    return ((const norm_op *)op)->inputs;
}

static size_t ORT_API_CALL output_count(const OrtCustomOp *op) {
    return ((const norm_op *)op)->outputs;
}

static OrtCustomOpInputOutputCharacteristic ORT_API_CALL input_presence(const OrtCustomOp *op, size_t index) {
    (void)op;
    return index < 2 ? INPUT_OUTPUT_REQUIRED : INPUT_OUTPUT_OPTIONAL;
}

static OrtCustomOpInputOutputCharacteristic ORT_API_CALL output_presence(const OrtCustomOp *op, size_t index) {
    (void)op;
    return index ? INPUT_OUTPUT_OPTIONAL : INPUT_OUTPUT_REQUIRED;
}

static OrtMemType ORT_API_CALL memory_type(const OrtCustomOp *op, size_t index) {
    (void)op;
    (void)index;
    return OrtMemTypeDefault;
}

#define BASE                                                                                                       \
    {                                                                                                              \
        .version = API_VERSION, .GetName = op_name, .GetExecutionProviderType = cpu, .GetInputType = input_type,   \
        .GetInputTypeCount = input_count, .GetOutputType = output_type, .GetOutputTypeCount = output_count,        \
        .KernelDestroy = destroy_kernel, .GetInputCharacteristic = input_presence,                                 \
        .GetOutputCharacteristic = output_presence, .GetInputMemoryType = memory_type,                             \
        .CreateKernelV2 = create_kernel, .KernelComputeV2 = compute                                                \
    }
#define F64 ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE
#define F32 ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT
#define F16 ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16
#define BF16 ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16
#define LAYER_NORM(type) {BASE, "LayerNormalization", LNORM_LAYER_NORM, 3, 3, type, type}
#define RMS_NORM(x, parameter) {BASE, "RMSNormalization", LNORM_RMS_NORM, 2, 1, x, parameter}
#define RMS_NORMS(x) RMS_NORM(x, F64), RMS_NORM(x, F32), RMS_NORM(x, F16), RMS_NORM(x, BF16)

static const norm_op ops[] = {
    LAYER_NORM(F64), LAYER_NORM(F32), LAYER_NORM(F16), LAYER_NORM(BF16),
    RMS_NORMS(F64),  RMS_NORMS(F32),  RMS_NORMS(F16),  RMS_NORMS(BF16),
};

static OrtStatus *create_domain(OrtCustomOpDomain **domain) {
    TRY(api()->CreateCustomOpDomain("lnorm", domain));
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        OrtStatus *status = api()->CustomOpDomain_Add(*domain, &ops[i].base);
        if (status) {
            api()->ReleaseCustomOpDomain(*domain);
            return status;
        }
    }
    return NULL;
}

/* ONNX Runtime's RegisterCustomOpsLibrary calls this, by its name, for each set of session options. A domain must
 * outlive the sessions that use it, and nobody says when they end: one domain, made by the first call, serves all. */
LNORM_API OrtStatusPtr ORT_API_CALL RegisterCustomOps(OrtSessionOptions *options, const OrtApiBase *base);

OrtStatusPtr ORT_API_CALL RegisterCustomOps(OrtSessionOptions *options, const OrtApiBase *base) {
    static _Atomic(OrtCustomOpDomain *) shared;
    const OrtApi *found = base->GetApi(API_VERSION);
    if (!found) {
        const OrtApi *first = base->GetApi(1);
        return first ? first->CreateStatus(ORT_NOT_IMPLEMENTED, "lnorm: expected ONNX Runtime 1.17 or later") : NULL;
    }
    atomic_store_explicit(&runtime, found, memory_order_release);
    OrtCustomOpDomain *domain = atomic_load(&shared);
    if (!domain) {
        OrtCustomOpDomain *created = NULL;
        TRY(create_domain(&created));
        if (atomic_compare_exchange_strong(&shared, &domain, created)) {
            domain = created;
        } else {
            found->ReleaseCustomOpDomain(created); /* another thread was faster */
        }
    }
    return found->AddCustomOpDomain(options, domain);
}
