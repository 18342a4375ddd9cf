// Random pictures for the kernel tests, and what a Preprocessor makes of them.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "kernels/preprocess.hpp"

namespace compass_edge {

inline constexpr PixelFormat kFormats[] = {PixelFormat::yuv420p, PixelFormat::nv12, PixelFormat::yuyv,
                                           PixelFormat::rgb24, PixelFormat::gray8};

// A picture whose planes are separate allocations of exactly plane_extent bytes.
struct Picture {
    std::vector<std::vector<std::uint8_t>> planes;
    ImageView view;

    Picture(PixelFormat format, int width, int height, std::mt19937& random) {
        view.format = format;
        view.matrix = static_cast<ColorMatrix>(random() % 3);
        view.range = static_cast<ColorRange>(random() % 2);
        view.width = width;
        view.height = height;
        for (int plane = 0; plane < plane_count(format); ++plane) {
            const PlaneExtent extent = plane_extent(format, plane, width, height);
            planes.emplace_back(static_cast<std::size_t>(extent.row_bytes) * extent.rows);
            for (auto& byte : planes.back()) byte = static_cast<std::uint8_t>(random());
            view.stride[plane] = extent.row_bytes;
        }
        for (std::size_t i = 0; i < planes.size(); ++i) view.data[i] = planes[i].data();
    }
};

inline std::vector<std::uint8_t> run(Preprocessor& preprocess, const ImageView& view) {
    const PatchGrid grid = preprocess.grid(view.width, view.height);
    std::vector<std::uint8_t> out(static_cast<std::size_t>(grid.rows()) * preprocess.spec().columns() *
                                  bytes(preprocess.dtype()));
    preprocess.run(view, out.data(), out.size());
    return out;
}

// Small pictures stay small, so that many sizes are quick.
inline PatchSpec small_spec(int patch) {
    PatchSpec spec;
    spec.patch = patch;
    spec.min_pixels = 4L * patch * patch;
    spec.max_pixels = 40000;
    return spec;
}

}  // namespace compass_edge
