// What a picture is: its pixel format, its colour description and where its planes lie.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace compass_edge {

// The formats a ring slot can hold. Everything else is converted to one of them when it is decoded.
enum class PixelFormat : std::uint8_t { yuv420p, nv12, yuyv, rgb24, gray8 };

// Y'CbCr to R'G'B' matrix. Ignored for rgb24 and gray8.
enum class ColorMatrix : std::uint8_t { bt601, bt709, bt2020 };

// limited: luma 16..235, chroma 16..240. full: 0..255. Ignored for rgb24.
enum class ColorRange : std::uint8_t { limited, full };

constexpr std::string_view name(PixelFormat format) {
    constexpr std::array<std::string_view, 5> names{"yuv420p", "nv12", "yuyv", "rgb24", "gray8"};
    return names[static_cast<std::size_t>(format)];
}

constexpr int plane_count(PixelFormat format) {
    return format == PixelFormat::yuv420p ? 3 : format == PixelFormat::nv12 ? 2 : 1;
}

// One plane's extent. A chroma plane of an odd-sized picture covers its last half sample, hence the rounding up.
struct PlaneExtent {
    int row_bytes;
    int rows;
};

constexpr PlaneExtent plane_extent(PixelFormat format, int plane, int width, int height) {
    const int half_width = (width + 1) / 2;
    const int half_height = (height + 1) / 2;
    switch (format) {
        case PixelFormat::yuv420p:
            return plane == 0 ? PlaneExtent{width, height} : PlaneExtent{half_width, half_height};
        case PixelFormat::nv12:
            return plane == 0 ? PlaneExtent{width, height} : PlaneExtent{2 * half_width, half_height};
        case PixelFormat::yuyv:
            return {4 * half_width, height};
        case PixelFormat::rgb24:
            return {3 * width, height};
        case PixelFormat::gray8:
            return {width, height};
    }
    return {0, 0};
}

// A picture somebody else owns. Valid as long as its owner keeps the planes alive and unchanged.
struct ImageView {
    PixelFormat format = PixelFormat::rgb24;
    ColorMatrix matrix = ColorMatrix::bt601;
    ColorRange range = ColorRange::limited;
    int width = 0;
    int height = 0;
    std::array<const std::uint8_t*, 3> data{};
    std::array<std::ptrdiff_t, 3> stride{};
};

}  // namespace compass_edge
