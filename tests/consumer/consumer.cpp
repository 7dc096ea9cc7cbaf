// A user's C++ program: RMS norm of bf16 rows with f32 weights, and an error message. Prints "lnorm VERSION".
#include <cstdint>
#include <iostream>
#include <lnorm.h>
#include <string>
#include <vector>

int main() {
    const std::vector<std::int64_t> shape = {2, 4}, weight_shape = {4};
    const std::vector<std::uint16_t> x = {0x3F80, 0xBF80, 0x3F80, 0xBF80, 0x4000, 0x4000, 0x4000, 0xC000}; // +-1, +-2
    const std::vector<float> weight = {1, 2, 3, 4};
    const std::vector<float> expected = {1, -2, 3, -4, 1, 2, 3, -4};
    std::vector<float> y(x.size());

    lnorm_tensor input = lnorm_dense(x.data(), LNORM_BF16, 2, shape.data());
    lnorm_tensor output = lnorm_dense(y.data(), LNORM_F32, 2, shape.data());
    lnorm_tensor gamma = lnorm_dense(weight.data(), LNORM_F32, 1, weight_shape.data());
    lnorm_op op = LNORM_OP_INIT;
    lnorm_io io = LNORM_IO_INIT;
    lnorm_error error = LNORM_ERROR_INIT;
    op.kind = LNORM_RMS_NORM;
    op.eps = 0.0;
    io.x = &input;
    io.y = &output;
    io.weight = &gamma;
    if (lnorm_run(&op, &io, nullptr, &error) != LNORM_OK || y != expected) {
        std::cerr << "wrong result " << error.message << "\n";
        return 1;
    }

    const std::int64_t two = 2;
    op.normalized_shape = &two;
    op.normalized_ndim = 1;
    lnorm_plan plan;
    if (lnorm_plan_init(&plan, &op, &io, &error) != LNORM_SHAPE_MISMATCH ||
        error.message != std::string("Given normalized_shape=[2], expected input with shape [*, 2], "
                                     "but got input of size[2, 4]")) {
        std::cerr << "wrong message: " << error.message << "\n";
        return 1;
    }
    std::cout << "lnorm " << lnorm_version() << "\n";
    return 0;
}
