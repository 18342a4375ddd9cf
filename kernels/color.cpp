#include "kernels/color.hpp"

#include <cmath>

namespace compass_edge {
namespace {

std::int16_t fixed(double value, double one) { return static_cast<std::int16_t>(std::lround(value * one)); }

}  // namespace

ColorCoefficients color_coefficients(ColorMatrix matrix, ColorRange range) {
    // Kr and Kb of ITU-R BT.601, BT.709 and BT.2020.
    double kr = 0.299, kb = 0.114;
    if (matrix == ColorMatrix::bt709) kr = 0.2126, kb = 0.0722;
    if (matrix == ColorMatrix::bt2020) kr = 0.2627, kb = 0.0593;
    const double kg = 1.0 - kr - kb;
    const bool limited = range == ColorRange::limited;
    const double luma = limited ? 255.0 / 219.0 : 1.0;
    const double chroma = limited ? 255.0 / 224.0 : 1.0;
    const double black = limited ? 16.0 : 0.0;
    constexpr double q14 = 1 << 14, q13 = 1 << 13;
    return {fixed(luma, q14),
            fixed(0.5 - black * luma, 64.0),
            fixed(2.0 * (1.0 - kr) * chroma, q13),
            fixed(-2.0 * kb * (1.0 - kb) / kg * chroma, q13),
            fixed(-2.0 * kr * (1.0 - kr) / kg * chroma, q13),
            fixed(2.0 * (1.0 - kb) * chroma, q13)};
}

PictureRow picture_row(const ImageView& image, int y) {
    PictureRow row{};
    const bool halved = image.format == PixelFormat::yuv420p || image.format == PixelFormat::nv12;
    for (int plane = 0; plane < plane_count(image.format); ++plane) {
        const std::ptrdiff_t plane_y = plane > 0 && halved ? y / 2 : y;
        row.data[plane] = image.data[plane] + plane_y * image.stride[plane];
    }
    return row;
}

ConvertRow row_converter(PixelFormat format, Isa isa) {
    switch (isa) {
#if defined(__x86_64__)
        case Isa::avx2:
            return avx2::row_converter(format);
        case Isa::avx512:
            return avx512::row_converter(format);
#elif defined(__aarch64__)
        case Isa::neon:
            return neon::row_converter(format);
#endif
        default:
            return scalar::row_converter(format);
    }
}

}  // namespace compass_edge
