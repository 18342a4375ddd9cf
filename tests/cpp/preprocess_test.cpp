#include "kernels/preprocess.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/color.hpp"
#include "kernels/patchify.hpp"
#include "kernels/resize.hpp"
#include "tests/cpp/check.hpp"
#include "tests/cpp/picture.hpp"

using namespace compass_edge;

namespace {

constexpr Dtype kDtypes[] = {Dtype::f32, Dtype::f16, Dtype::bf16};

// The same in whole-picture passes: convert, resize every row, resize every column, place every element by its indices.
std::vector<float> reference(const ImageView& view, const PatchSpec& spec, const PatchGrid& grid) {
    const int out_width = grid.width * spec.patch, out_height = grid.height * spec.patch;
    const int in_stride = view.width + 2 * kRowAlignment, out_stride = out_width + 2 * kRowAlignment;
    const ColorCoefficients c = color_coefficients(view.matrix, view.range);
    const ResizeAxis across(view.width, out_width), down(view.height, out_height);
    const AxisView vertical = down.view();
    std::vector<std::vector<std::uint8_t>> rows;
    for (int y = 0; y < view.height; ++y) {
        std::vector<std::uint8_t> in(3 * in_stride), out(3 * out_stride);
        row_converter(view.format, Isa::scalar)(picture_row(view, y), view.width, c, in.data(), in_stride);
        if (converted_planes(view.format) == 1) {
            for (int plane = 1; plane < 3; ++plane) std::copy_n(in.begin(), in_stride, in.begin() + plane * in_stride);
        }
        horizontal_pass(Isa::scalar)(in.data(), in_stride, 3, across.view(), out.data(), out_stride);
        rows.push_back(across.identity() ? in : out);
    }
    const auto pixel = [&](int channel, int y, int x) {
        const int at = channel * (across.identity() ? in_stride : out_stride) + x;
        if (down.identity()) return rows[y][at];
        std::vector<const std::uint8_t*> taps;
        for (int i = 0; i < vertical.count[y]; ++i) taps.push_back(&rows[vertical.start[y] + i][at]);
        std::uint8_t result;
        vertical_pass(Isa::scalar)(taps.data(), vertical.weights + y * vertical.taps, vertical.count[y],
                                   vertical.precision, 1, &result);
        return result;
    };
    const Normaliser n = make_normaliser(spec.mean, spec.std, Dtype::f32);
    std::vector<float> out;
    for (int by = 0; by < grid.height; by += spec.merge)
        for (int bx = 0; bx < grid.width; bx += spec.merge)
            for (int my = 0; my < spec.merge; ++my)
                for (int mx = 0; mx < spec.merge; ++mx)
                    for (int channel = 0; channel < 3; ++channel)
                        for (int t = 0; t < spec.temporal; ++t)
                            for (int y = 0; y < spec.patch; ++y)
                                for (int x = 0; x < spec.patch; ++x)
                                    out.push_back(n.f32[channel][pixel(channel, (by + my) * spec.patch + y,
                                                                       (bx + mx) * spec.patch + x)]);
    return out;
}

}  // namespace

TEST(one_pass_equals_whole_picture_passes) {
    std::mt19937 random(7);
    for (const Isa isa : available_isas()) {
        for (const PixelFormat format : kFormats) {
            for (const auto& [width, height] :
                 {std::pair(64, 64), {96, 33}, {70, 64}, {61, 47}, {150, 9}, {1, 1}, {400, 300}}) {
                const Picture picture(format, width, height, random);
                PatchSpec spec = small_spec(width % 3 == 0 ? 14 : 16);
                spec.max_pixels = 12000;
                Preprocessor preprocess(spec, Dtype::f32, isa);
                const auto expected = reference(picture.view, spec, preprocess.grid(width, height));
                const auto out = run(preprocess, picture.view);
                CHECK_EQ(out.size(), expected.size() * 4);
                CHECK(std::memcmp(out.data(), expected.data(), out.size()) == 0);
            }
        }
    }
}

TEST(every_instruction_set_gives_the_scalar_bits) {
    std::mt19937 random(8);
    for (int round = 0; round < 60; ++round) {
        const int width = 3 + static_cast<int>(random() % 400),
                  height = 2 + width / 150 + static_cast<int>(random() % 300);
        const Picture picture(kFormats[round % 5], width, height, random);
        for (const Dtype dtype : kDtypes) {
            const PatchSpec spec = small_spec(round % 4 == 0 ? 14 : 16);
            Preprocessor scalar(spec, dtype, Isa::scalar);
            const auto expected = run(scalar, picture.view);
            for (const Isa isa : available_isas()) {
                Preprocessor preprocess(spec, dtype, isa);
                CHECK(run(preprocess, picture.view) == expected);
            }
        }
    }
}

TEST(a_large_aligned_output_is_the_same) {
    std::mt19937 random(9);
    const Picture picture(PixelFormat::nv12, 1280, 720, random);
    Preprocessor scalar(PatchSpec{}, Dtype::f32, Isa::scalar);
    const auto expected = run(scalar, picture.view);
    for (const Isa isa : available_isas()) {
        Preprocessor preprocess(PatchSpec{}, Dtype::f32, isa);
        for (const std::size_t offset : {0, 4}) {
            std::vector<std::uint8_t> memory(expected.size() + 128);
            std::uint8_t* out =
                memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64 + offset;
            preprocess.run(picture.view, out, expected.size());
            CHECK(std::memcmp(out, expected.data(), expected.size()) == 0);
        }
    }
}

TEST(geometry_may_change_from_run_to_run) {
    std::mt19937 random(10);
    Preprocessor reused(small_spec(16), Dtype::f16);
    for (const auto& [width, height] : {std::pair(64, 64), {200, 100}, {33, 47}, {64, 64}, {200, 101}}) {
        for (const PixelFormat format : {PixelFormat::gray8, PixelFormat::yuv420p}) {
            const Picture picture(format, width, height, random);
            Preprocessor fresh(small_spec(16), Dtype::f16);
            CHECK(run(reused, picture.view) == run(fresh, picture.view));
        }
    }
}

TEST(a_bottom_up_picture_is_read_through_a_negative_stride) {
    std::mt19937 random(11);
    const Picture picture(PixelFormat::rgb24, 50, 40, random);
    Picture flipped = picture;
    for (int y = 0; y < 40; ++y) std::copy_n(&picture.planes[0][y * 150], 150, &flipped.planes[0][(39 - y) * 150]);
    flipped.view.data[0] = flipped.planes[0].data() + 39 * 150;
    flipped.view.stride[0] = -150;
    Preprocessor preprocess(small_spec(16), Dtype::f32);
    CHECK(run(preprocess, flipped.view) == run(preprocess, picture.view));
}

TEST(what_is_wrong_is_said_before_anything_is_written) {
    std::mt19937 random(13);
    const Picture picture(PixelFormat::yuv420p, 64, 64, random);
    Preprocessor preprocess(small_spec(16), Dtype::f16);
    std::vector<std::uint16_t> out(16 * 1536);
    const auto go = [&](const ImageView& view) { preprocess.run(view, out.data(), out.size() * 2); };
    go(picture.view);
    ImageView view = picture.view;
    view.data[2] = nullptr;
    CHECK_THROWS(go(view), "plane 2 is null");
    view = picture.view;
    view.stride[1] = 31;
    CHECK_THROWS(go(view), "at least 32 bytes for plane 1");
    view = picture.view;
    view.height = 0;
    CHECK_THROWS(go(view), "64x0");
    view.height = 64;
    CHECK_THROWS(preprocess.run(view, out.data(), out.size() * 2 - 1),
                 "at least 49152 bytes (4 * 4 patches of 1536 f16");
    CHECK_THROWS(preprocess.run(view, nullptr, 0), "got no buffer");
    CHECK_THROWS(preprocess.run(view, reinterpret_cast<std::uint8_t*>(out.data()) + 1, out.size() * 4), "aligned");
    PatchSpec spec;
    spec.patch = 0;
    CHECK_THROWS(Preprocessor(spec, Dtype::f16), "a patch size of 1 to 256, got 0");
}

TEST(the_environment_chooses_the_instruction_set) {
    setenv("COMPASS_EDGE_ISA", "scalar", 1);
    CHECK(current_isa() == Isa::scalar);
    setenv("COMPASS_EDGE_ISA", "sse9", 1);
    CHECK_THROWS(current_isa(),
                 "COMPASS_EDGE_ISA: Expected an instruction set of scalar, avx2, avx512 or neon, got 'sse9'");
#if defined(__x86_64__)
    setenv("COMPASS_EDGE_ISA", "neon", 1);
#else
    setenv("COMPASS_EDGE_ISA", "avx2", 1);
#endif
    CHECK_THROWS(current_isa(), "is not available on this machine");
    unsetenv("COMPASS_EDGE_ISA");
    CHECK(current_isa() == detected_isa());
    CHECK(available_isas().front() == Isa::scalar);
}

int main(int argc, char** argv) { return check::run(argc, argv); }
