#include "kernels/preprocess_cuda.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

#include "kernels/color.hpp"
#include "kernels/patchify.hpp"
#include "kernels/preprocess_element.hpp"
#include "kernels/resize.hpp"
#include "tests/cpp/check.hpp"
#include "tests/cpp/picture.hpp"

using namespace compass_edge;

// The CUDA twin's threads, run on the host in the order of its two launches.
TEST(the_cuda_threads_give_the_scalar_bits) {
    std::mt19937 random(14);
    for (const PixelFormat format : kFormats) {
        for (const auto& [width, height] : {std::pair(64, 64), {96, 33}, {70, 64}, {61, 47}, {400, 300}}) {
            const Picture picture(format, width, height, random);
            const PatchSpec spec = small_spec(width == 61 ? 14 : 16);
            Preprocessor scalar(spec, Dtype::f16, Isa::scalar);
            const PatchGrid grid = scalar.grid(width, height);
            const ResizeAxis across(width, grid.width * spec.patch), down(height, grid.height * spec.patch);
            const Normaliser normaliser = make_normaliser(spec.mean, spec.std, Dtype::f16);
            ElementPicture source{format, width, height,
                                  {},     {},    color_coefficients(picture.view.matrix, picture.view.range)};
            std::copy_n(picture.view.data.begin(), 3, source.data);
            std::copy_n(picture.view.stride.begin(), 3, source.stride);
            std::vector<std::uint8_t> memory(static_cast<std::size_t>(3) * height * grid.width * spec.patch);
            const ElementRows rows{memory.data(), grid.width * spec.patch, height};
            for (int y = 0; y < rows.height; ++y) {
                for (int x = 0; x < rows.width; ++x) write_row_pixel(source, across.view(), rows, x, y);
            }
            const ElementLayout layout{spec.patch, spec.merge, spec.temporal, grid.width};
            std::vector<std::uint16_t> out(static_cast<std::size_t>(grid.rows()) * spec.columns());
            for (int row = 0; row < grid.rows(); ++row) {
                for (int within = 0; within < 3 * spec.patch * spec.patch; ++within) {
                    write_element(rows, down.view(), layout, &normaliser.half[0][0], row, within, out.data());
                }
            }
            const auto expected = run(scalar, picture.view);
            CHECK(std::memcmp(out.data(), expected.data(), expected.size()) == 0);
        }
    }
}

// Without CUDA in the build, or without a device in the machine.
TEST(the_cuda_twin_says_why_it_cannot_run) {
    try {
        CudaPreprocessor preprocess(PatchSpec{}, Dtype::f16);
        std::printf("a CUDA device is present: compare CudaPreprocessor with Preprocessor on it\n");
    } catch (const std::runtime_error& error) {
        CHECK(std::string(error.what()).find("CUDA") != std::string::npos);
    }
}

int main(int argc, char** argv) { return check::run(argc, argv); }
