// Resize, 16 outputs of a row or a vector of a column at a time. Sums are exact, so their order is free.
#include "kernels/resize.hpp"
#include "kernels/resize_formula.hpp"
#include "kernels/simd.hpp"

namespace compass_edge::COMPASS_EDGE_ISA {
namespace {

using HorizontalBlocks = void (*)(const std::uint8_t*, std::ptrdiff_t, const AxisView&, std::uint8_t*, std::ptrdiff_t);

// Pairs: how many pairs of inputs an output has when all of them lie in one window, or 0 for any number in any window.
template <int Planes, int Pairs>
void horizontal_blocks(const std::uint8_t* in, std::ptrdiff_t in_stride, const AxisView& axis, std::uint8_t* out,
                       std::ptrdiff_t out_stride) {
    const int all_pairs = Pairs > 0 ? Pairs : axis.pairs, pairs_a_window = Pairs > 0 ? Pairs : axis.pairs_a_window;
    // A block is 16 outputs, however many vectors that takes.
    for (int x = 0; x < 16 * axis.blocks; x += kFloats) {
        const std::int32_t* window = axis.window + x / 4;
        const std::int16_t* weights =
            axis.block_weights + 32 * static_cast<std::ptrdiff_t>(x / 16) * all_pairs + x % 16 * 2;
        const U8 first_shuffle = load(axis.shuffle + 4 * static_cast<std::ptrdiff_t>(x));
        auto sum0 = start_sum(half_unit(axis.precision)), sum1 = sum0, sum2 = sum0;
        for (int pair = 0; pair < all_pairs; pair += pairs_a_window) {
            const std::uint8_t* from = in + 2 * pair;
            const int pairs = pair + pairs_a_window < all_pairs ? pairs_a_window : all_pairs - pair;
            const U8 windows0 = load_windows(from, window);
            const U8 windows1 = Planes > 1 ? load_windows(from + in_stride, window) : windows0;
            const U8 windows2 = Planes > 1 ? load_windows(from + 2 * in_stride, window) : windows0;
            U8 shuffle = first_shuffle;
            for (int i = 0; i < pairs; ++i, weights += 32, shuffle = advance(shuffle)) {
                const I16 two = load_weights(weights);
                sum0 = accumulate(sum0, windows0, shuffle, two);
                if constexpr (Planes > 1) {
                    sum1 = accumulate(sum1, windows1, shuffle, two);
                    sum2 = accumulate(sum2, windows2, shuffle, two);
                }
            }
        }
        store_pixels(out + x, sum0, axis.precision);
        if constexpr (Planes > 1) {
            store_pixels(out + out_stride + x, sum1, axis.precision);
            store_pixels(out + 2 * out_stride + x, sum2, axis.precision);
        }
    }
}

template <int Planes>
HorizontalBlocks blocks_for(const AxisView& axis) {
    if (axis.pairs > axis.pairs_a_window) return horizontal_blocks<Planes, 0>;
    switch (axis.pairs) {
        case 2:
            return horizontal_blocks<Planes, 2>;
        case 3:
            return horizontal_blocks<Planes, 3>;
        case 4:
            return horizontal_blocks<Planes, 4>;
        case 5:
            return horizontal_blocks<Planes, 5>;
        default:
            return horizontal_blocks<Planes, 0>;
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
        for (int plane = 0; plane < planes; ++plane)
            horizontal_wide(in + plane * in_stride, axis, out + plane * out_stride);
    } else {
        (planes == 3 ? blocks_for<3>(axis) : blocks_for<1>(axis))(in, in_stride, axis, out, out_stride);
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
