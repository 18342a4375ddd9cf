#include "runtime/frame.hpp"

#include <cstring>
#include <string>

#include "runtime/error.hpp"

namespace compass_edge {

Layout packed_layout(PixelFormat format, int width, int height, ColorMatrix matrix, ColorRange range) {
    constexpr int largest_side = 1 << 15;
    if (width < 1 || height < 1 || width > largest_side || height > largest_side) {
        throw Error(Fault::usage, "A frame needs a width and a height from 1 to " + std::to_string(largest_side) +
                                      " pixels, got " + std::to_string(width) + "x" + std::to_string(height) + ".");
    }
    Layout layout;
    layout.geometry.format = format;
    layout.geometry.matrix = matrix;
    layout.geometry.range = range;
    layout.geometry.width = width;
    layout.geometry.height = height;
    for (int plane = 0; plane < plane_count(format); ++plane) {
        const PlaneExtent extent = plane_extent(format, plane, width, height);
        const std::size_t stride = round_up(static_cast<std::size_t>(extent.row_bytes), row_alignment);
        layout.geometry.offset[plane] = static_cast<std::uint32_t>(layout.bytes);
        layout.geometry.stride[plane] = static_cast<std::int32_t>(stride);
        layout.bytes += stride * static_cast<std::size_t>(extent.rows);
    }
    return layout;
}

ImageView view_of(const Geometry& geometry, const std::uint8_t* base) {
    ImageView view;
    view.format = geometry.format;
    view.matrix = geometry.matrix;
    view.range = geometry.range;
    view.width = geometry.width;
    view.height = geometry.height;
    for (int plane = 0; plane < plane_count(geometry.format); ++plane) {
        view.data[plane] = base + geometry.offset[plane];
        view.stride[plane] = geometry.stride[plane];
    }
    return view;
}

void copy_planes(const ImageView& from, const Geometry& geometry, std::uint8_t* base) {
    for (int plane = 0; plane < plane_count(geometry.format); ++plane) {
        const PlaneExtent extent = plane_extent(geometry.format, plane, geometry.width, geometry.height);
        const std::uint8_t* source = from.data[plane];
        std::uint8_t* target = base + geometry.offset[plane];
        for (int row = 0; row < extent.rows; ++row) {
            std::memcpy(target, source, static_cast<std::size_t>(extent.row_bytes));
            source += from.stride[plane];
            target += geometry.stride[plane];
        }
    }
}

}  // namespace compass_edge
