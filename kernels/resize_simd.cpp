// Resize, 16 outputs of a row or a vector of a column at a time. Sums are exact, so their order is free.
#include "kernels/resize.hpp"
#include "kernels/resize_formula.hpp"
#include "kernels/simd.hpp"

namespace compass_edge::COMPASS_EDGE_ISA {
namespace {

template <int Planes>
void horizontal_blocks(const std::uint8_t* in, std::ptrdiff_t in_stride, const AxisView& axis, std::uint8_t* out,
                       std::ptrdiff_t out_stride) {
    const std::int16_t* weights = axis.block_weights;
    for (int block = 0; block < axis.blocks; ++block) {
        const std::int32_t* window = axis.window + 4 * block;
        const auto shuffle = load_shuffle(axis.shuffle + 64 * static_cast<std::ptrdiff_t>(block));
        Block sums[Planes];
        for (Block& sum : sums) sum = start_block(half_unit(axis.precision));
        for (int pair = 0; pair < axis.pairs; ++pair, weights += 32) {
            const auto pair_of_weights = load_weights(weights);
            for (int plane = 0; plane < Planes; ++plane) {
                accumulate(sums[plane], in + plane * in_stride + 2 * pair, window, shuffle, pair_of_weights);
            }
        }
        for (int plane = 0; plane < Planes; ++plane) {
            store_block(out + plane * out_stride + 16 * block, sums[plane], axis.precision);
        }
    }
}

// Shrinking beyond about 4.6 times: an output has 19 inputs and more, so the compiler's own vectors do well enough.
void horizontal_wide(const std::uint8_t* in, const AxisView& axis, std::uint8_t* out) {
    for (int x = 0; x < axis.out; ++x) {
        const std::uint8_t* pixels = in + axis.start[x];
        const std::int16_t* weights = axis.weights + static_cast<std::ptrdiff_t>(x) * axis.taps;
        std::int32_t sum = half_unit(axis.precision);
        for (int tap = 0; tap < axis.count[x]; ++tap) sum += pixels[tap] * weights[tap];
        out[x] = to_pixel(sum, axis.precision);
    }
}

void horizontal(const std::uint8_t* in, std::ptrdiff_t in_stride, int planes, const AxisView& axis, std::uint8_t* out,
                std::ptrdiff_t out_stride) {
    if (axis.window == nullptr) {
        for (int plane = 0; plane < planes; ++plane) horizontal_wide(in + plane * in_stride, axis, out + plane * out_stride);
    } else if (planes == 3) {
        horizontal_blocks<3>(in, in_stride, axis, out, out_stride);
    } else {
        horizontal_blocks<1>(in, in_stride, axis, out, out_stride);
    }
}

void vertical(const std::uint8_t* const* rows, const std::int16_t* weights, int count, int precision, int bytes,
              std::uint8_t* out) {
    const std::int16_t last_alone[2] = {weights[count - 1], 0};
    for (int x = 0; x < bytes; x += kBytes) {
        Sums sums = start_sums(half_unit(precision));
        int tap = 0;
        for (; tap + 1 < count; tap += 2) {
            accumulate(sums, load(rows[tap] + x), load(rows[tap + 1] + x), pair_weights(weights + tap));
        }
        if (tap < count) {
            const U8 last = load(rows[tap] + x);
            accumulate(sums, last, last, pair_weights(last_alone));
        }
        store(out + x, narrow(sums, precision));
    }
}

}  // namespace

HorizontalPass horizontal_pass() { return horizontal; }
VerticalPass vertical_pass() { return vertical; }

}  // namespace compass_edge::COMPASS_EDGE_ISA
