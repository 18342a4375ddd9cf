// What one CUDA thread of the preprocess computes, callable on the host too.
//
// preprocess_cuda.cu only launches these; tests/cpp/preprocess_cuda_test.cpp calls them in the launch's order on the
// host and holds them to the bits of the CPU's pass, so that arithmetic and indexing are proved without a GPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/color_formula.hpp"
#include "kernels/image.hpp"
#include "kernels/resize.hpp"
#include "kernels/resize_formula.hpp"

namespace compass_edge {

// An ImageView without the standard library, which device code cannot call.
struct ElementPicture {
    PixelFormat format;
    int width, height;
    const std::uint8_t* data[3];
    std::ptrdiff_t stride[3];
    ColorCoefficients coefficients;
};

// The picture resized horizontally. [3, height, width]
struct ElementRows {
    std::uint8_t* data;
    int width, height;
};

struct ElementLayout {
    int patch, merge, temporal, grid_width;
};

namespace {

COMPASS_EDGE_HOST_DEVICE inline Rgb pixel_at(const ElementPicture& p, int x, int y) {
    const std::uint8_t* row = p.data[0] + y * p.stride[0];
    switch (p.format) {
        case PixelFormat::yuv420p:
            return yuv_to_rgb(row[x], p.data[1][y / 2 * p.stride[1] + x / 2], p.data[2][y / 2 * p.stride[2] + x / 2],
                              p.coefficients);
        case PixelFormat::nv12: {
            const std::uint8_t* uv = p.data[1] + y / 2 * p.stride[1] + x / 2 * 2;
            return yuv_to_rgb(row[x], uv[0], uv[1], p.coefficients);
        }
        case PixelFormat::yuyv: {
            const std::uint8_t* pair = row + x / 2 * 4;
            return yuv_to_rgb(pair[x % 2 * 2], pair[1], pair[3], p.coefficients);
        }
        case PixelFormat::rgb24:
            return {row[3 * x], row[3 * x + 1], row[3 * x + 2]};
        case PixelFormat::gray8:
            break;
    }
    const std::uint8_t gray = luma_to_gray(row[x], p.coefficients);
    return {gray, gray, gray};
}

// picture [device, u8] [planes], across the horizontal axis -> rows [device, u8] [3, height, width] at (x, y)
COMPASS_EDGE_HOST_DEVICE inline void write_row_pixel(const ElementPicture& picture, const AxisView& across,
                                                     const ElementRows& rows, int x, int y) {
    Rgb pixel;
    if (across.in == across.out) {
        pixel = pixel_at(picture, x, y);
    } else {
        std::int32_t red = half_unit(across.precision), green = red, blue = red;
        for (int tap = 0; tap < across.count[x]; ++tap) {
            const Rgb in = pixel_at(picture, across.start[x] + tap, y);
            const std::int32_t weight = across.weights[static_cast<std::ptrdiff_t>(x) * across.taps + tap];
            red += in.red * weight;
            green += in.green * weight;
            blue += in.blue * weight;
        }
        pixel = {to_pixel(red, across.precision), to_pixel(green, across.precision), to_pixel(blue, across.precision)};
    }
    const std::ptrdiff_t plane = static_cast<std::ptrdiff_t>(rows.width) * rows.height;
    std::uint8_t* out = rows.data + static_cast<std::ptrdiff_t>(y) * rows.width + x;
    out[0] = pixel.red;
    out[plane] = pixel.green;
    out[2 * plane] = pixel.blue;
}

// rows [device, u8] [3, height, width], values [device, dtype] [3, 256]
//   -> out [device, dtype] [patches, 3, temporal, patch, patch]: element `within` of [3, patch, patch] of patch `row`
template <class Element>
COMPASS_EDGE_HOST_DEVICE inline void write_element(const ElementRows& rows, const AxisView& down,
                                                   const ElementLayout& layout, const Element* values, int row,
                                                   int within, Element* out) {
    const int area = layout.patch * layout.patch, merge = layout.merge;
    const int channel = within / area, place = within % area;
    // row counts [gh / m, gw / m, m, m]
    const int block = row / (merge * merge), inner = row % (merge * merge), blocks_across = layout.grid_width / merge;
    const int grid_y = block / blocks_across * merge + inner / merge;
    const int grid_x = block % blocks_across * merge + inner % merge;
    const int x = grid_x * layout.patch + place % layout.patch, y = grid_y * layout.patch + place / layout.patch;

    const std::uint8_t* column = rows.data + static_cast<std::ptrdiff_t>(channel) * rows.width * rows.height + x;
    std::uint8_t level;
    if (down.in == down.out) {
        level = column[static_cast<std::ptrdiff_t>(y) * rows.width];
    } else {
        std::int32_t sum = half_unit(down.precision);
        for (int tap = 0; tap < down.count[y]; ++tap) {
            sum += column[static_cast<std::ptrdiff_t>(down.start[y] + tap) * rows.width] *
                   down.weights[static_cast<std::ptrdiff_t>(y) * down.taps + tap];
        }
        level = to_pixel(sum, down.precision);
    }
    Element* to = out + (static_cast<std::ptrdiff_t>(row) * 3 + channel) * layout.temporal * area + place;
    for (int t = 0; t < layout.temporal; ++t) to[static_cast<std::ptrdiff_t>(t) * area] = values[channel * 256 + level];
}

}  // namespace
}  // namespace compass_edge
