// Colour: one row of a picture to planar 8-bit RGB.
//
// row  [host, u8] [the planes' rows]         read only, exactly plane_extent bytes are touched
// out  [host, u8] [planes, plane_stride]     red, green, blue; gray8 writes one plane
//
// Chroma is replicated (nearest), as the unscaled converters of swscale and OpenCV do. A plane's row in `out` must have
// room for the width rounded up to kRowAlignment, because whole vectors are stored.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/color_formula.hpp"
#include "kernels/image.hpp"
#include "kernels/isa.hpp"

namespace compass_edge {

constexpr int kRowAlignment = 64;

// Where one row of each plane begins. A plain struct: it crosses into the code of every instruction set.
struct PictureRow {
    const std::uint8_t* data[3];
};

using ConvertRow = void (*)(const PictureRow& row, int width, const ColorCoefficients& coefficients, std::uint8_t* out,
                            std::ptrdiff_t plane_stride);

ColorCoefficients color_coefficients(ColorMatrix matrix, ColorRange range);

// Planes of the converted row: one for gray8, whose three channels are equal, else three.
constexpr int converted_planes(PixelFormat format) { return format == PixelFormat::gray8 ? 1 : 3; }

PictureRow picture_row(const ImageView& image, int y);

ConvertRow row_converter(PixelFormat format, Isa isa);

namespace scalar {
ConvertRow row_converter(PixelFormat format);
}
namespace avx2 {
ConvertRow row_converter(PixelFormat format);
}
namespace avx512 {
ConvertRow row_converter(PixelFormat format);
}
namespace neon {
ConvertRow row_converter(PixelFormat format);
}

}  // namespace compass_edge
