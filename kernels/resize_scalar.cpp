// The oracle: one output at a time, exactly its own inputs.
#include "kernels/resize.hpp"
#include "kernels/resize_formula.hpp"

namespace compass_edge::scalar {
namespace {

void horizontal(const std::uint8_t* in, std::ptrdiff_t in_stride, int planes, const AxisView& axis, std::uint8_t* out,
                std::ptrdiff_t out_stride) {
    for (int plane = 0; plane < planes; ++plane) {
        for (int x = 0; x < axis.out; ++x) {
            const std::uint8_t* pixels = in + plane * in_stride + axis.start[x];
            const std::int16_t* weights = axis.weights + static_cast<std::ptrdiff_t>(x) * axis.taps;
            std::int32_t sum = half_unit(axis.precision);
            for (int tap = 0; tap < axis.count[x]; ++tap) sum += pixels[tap] * weights[tap];
            out[plane * out_stride + x] = to_pixel(sum, axis.precision);
        }
    }
}

void vertical(const std::uint8_t* const* rows, const std::int16_t* weights, int count, int precision, int bytes,
              std::uint8_t* out) {
    for (int x = 0; x < bytes; ++x) {
        std::int32_t sum = half_unit(precision);
        for (int tap = 0; tap < count; ++tap) sum += rows[tap][x] * weights[tap];
        out[x] = to_pixel(sum, precision);
    }
}

}  // namespace

HorizontalPass horizontal_pass() { return horizontal; }
VerticalPass vertical_pass() { return vertical; }

}  // namespace compass_edge::scalar
