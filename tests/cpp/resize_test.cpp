#include "kernels/resize.hpp"

#include <cstdlib>
#include <random>
#include <vector>

#include "tests/cpp/check.hpp"

using namespace compass_edge;

namespace {

std::vector<std::uint8_t> random_bytes(std::size_t count, std::mt19937& random) {
    std::vector<std::uint8_t> bytes(count);
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
    return bytes;
}

int round_up(int width) { return (width + kRowAlignment - 1) / kRowAlignment * kRowAlignment; }

// `rows` holds planes of in pixels, side by side and without padding; so does the result.
std::vector<std::uint8_t> resize_row(const std::vector<std::uint8_t>& rows, int planes, const ResizeAxis& axis,
                                     Isa isa) {
    const AxisView view = axis.view();
    const int in_stride = view.in + kRowAlignment, out_stride = round_up(view.out);
    std::vector<std::uint8_t> in(static_cast<std::size_t>(planes) * in_stride, 255), out(planes * out_stride), pixels;
    for (int plane = 0; plane < planes; ++plane) {
        std::copy_n(rows.begin() + plane * view.in, view.in, in.begin() + plane * in_stride);
    }
    horizontal_pass(isa)(in.data(), in_stride, planes, view, out.data(), out_stride);
    for (int plane = 0; plane < planes; ++plane) {
        pixels.insert(pixels.end(), out.begin() + plane * out_stride, out.begin() + plane * out_stride + view.out);
    }
    return pixels;
}

}  // namespace

// Made with torch 2.13.0: interpolate(uint8, mode='bicubic', antialias=True).
TEST(known_rows_equal_torch) {
    using Bytes = std::vector<std::uint8_t>;
    const Bytes in{0, 255, 13, 77, 200, 201, 3, 90, 128, 255, 255, 0};
    const Bytes expected[] = {
        {111, 143},
        {106, 117, 113, 145, 167},
        {113, 78, 165, 107, 78, 237, 115},
        {0, 116, 252, 75, 10, 74, 157, 213, 212, 97, 1, 67, 104, 130, 218, 255, 255, 104, 0},
        {0,  17, 134, 247, 209, 79,  7,   22,  67,  113, 170, 206, 221, 210, 147,
         48, 0,  32,  82,  102, 112, 138, 194, 247, 255, 255, 238, 120, 16,  0},
    };
    for (const Isa isa : available_isas()) {
        for (const Bytes& out : expected) {
            const ResizeAxis axis(static_cast<int>(in.size()), static_cast<int>(out.size()));
            CHECK(resize_row(in, 1, axis, isa) == out);
        }
    }
}

TEST(weights_add_up_and_fit_16_bits) {
    for (const auto& [in, out] :
         {std::pair(720, 704), {480, 640}, {1920, 640}, {4000, 100}, {1, 256}, {17, 16}, {3, 5}}) {
        const ResizeAxis axis(in, out);
        const AxisView view = axis.view();
        CHECK(!axis.identity());
        CHECK(view.precision >= 8);
        for (int i = 0; i < out; ++i) {
            int sum = 0;
            for (int tap = 0; tap < view.count[i]; ++tap) sum += view.weights[i * view.taps + tap];
            CHECK(std::abs(sum - (1 << view.precision)) <= view.count[i]);
            CHECK(view.start[i] >= 0 && view.count[i] >= 1 && view.start[i] + view.count[i] <= in);
        }
    }
    CHECK(ResizeAxis(640, 640).identity());
}

TEST(horizontal_gives_the_scalar_bits_on_every_instruction_set) {
    std::mt19937 random(2);
    for (int round = 0; round < 250; ++round) {
        const int out = 1 + static_cast<int>(random() % 150);
        const int in = round % 3 == 0 ? 1 + static_cast<int>(random() % 2000) : 1 + static_cast<int>(random() % 300);
        const int planes = round % 2 == 0 ? 3 : 1;
        const ResizeAxis axis(in, out);
        const auto rows = random_bytes(static_cast<std::size_t>(planes) * in, random);
        const auto expected = resize_row(rows, planes, axis, Isa::scalar);
        for (const Isa isa : available_isas()) CHECK(resize_row(rows, planes, axis, isa) == expected);
    }
}

TEST(horizontal_windows_are_used_up_to_a_shrink_of_four) {
    CHECK(ResizeAxis(1300, 1280).view().window != nullptr);
    CHECK(ResizeAxis(2560, 640).view().window != nullptr);
    CHECK(ResizeAxis(3840, 640).view().window == nullptr);
}

TEST(vertical_gives_the_scalar_bits_on_every_instruction_set) {
    std::mt19937 random(3);
    for (int count = 1; count < 40; ++count) {
        const int bytes = kRowAlignment * (1 + count % 5), precision = 10 + count % 6;
        std::vector<std::vector<std::uint8_t>> rows;
        std::vector<const std::uint8_t*> pointers;
        std::vector<std::int16_t> weights;
        for (int tap = 0; tap < count; ++tap) {
            rows.push_back(random_bytes(static_cast<std::size_t>(bytes), random));
            pointers.push_back(rows.back().data());
            weights.push_back(static_cast<std::int16_t>(random()));
        }
        std::vector<std::uint8_t> expected(bytes), out(bytes);
        vertical_pass(Isa::scalar)(pointers.data(), weights.data(), count, precision, bytes, expected.data());
        for (const Isa isa : available_isas()) {
            vertical_pass(isa)(pointers.data(), weights.data(), count, precision, bytes, out.data());
            CHECK(out == expected);
        }
    }
}

int main(int argc, char** argv) { return check::run(argc, argv); }
