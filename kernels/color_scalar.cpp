// The oracle: one pixel at a time, in the words of color_formula.hpp.
#include "kernels/color.hpp"

namespace compass_edge::scalar {
namespace {

struct Planes {
    std::uint8_t* out;
    std::ptrdiff_t stride;

    void set(int x, Rgb pixel) const {
        out[x] = pixel.red;
        out[x + stride] = pixel.green;
        out[x + 2 * stride] = pixel.blue;
    }
};

void yuv420p(const PictureRow& row, int width, const ColorCoefficients& c, std::uint8_t* out, std::ptrdiff_t stride) {
    const Planes planes{out, stride};
    for (int x = 0; x < width; ++x) {
        planes.set(x, yuv_to_rgb(row.data[0][x], row.data[1][x / 2], row.data[2][x / 2], c));
    }
}

void nv12(const PictureRow& row, int width, const ColorCoefficients& c, std::uint8_t* out, std::ptrdiff_t stride) {
    const Planes planes{out, stride};
    for (int x = 0; x < width; ++x) {
        const std::uint8_t* uv = row.data[1] + x / 2 * 2;
        planes.set(x, yuv_to_rgb(row.data[0][x], uv[0], uv[1], c));
    }
}

void yuyv(const PictureRow& row, int width, const ColorCoefficients& c, std::uint8_t* out, std::ptrdiff_t stride) {
    const Planes planes{out, stride};
    for (int x = 0; x < width; ++x) {
        const std::uint8_t* pair = row.data[0] + x / 2 * 4;
        planes.set(x, yuv_to_rgb(pair[x % 2 * 2], pair[1], pair[3], c));
    }
}

void rgb24(const PictureRow& row, int width, const ColorCoefficients&, std::uint8_t* out, std::ptrdiff_t stride) {
    const Planes planes{out, stride};
    for (int x = 0; x < width; ++x) {
        const std::uint8_t* pixel = row.data[0] + 3 * x;
        planes.set(x, {pixel[0], pixel[1], pixel[2]});
    }
}

void gray8(const PictureRow& row, int width, const ColorCoefficients& c, std::uint8_t* out, std::ptrdiff_t) {
    for (int x = 0; x < width; ++x) out[x] = luma_to_gray(row.data[0][x], c);
}

}  // namespace

ConvertRow row_converter(PixelFormat format) {
    switch (format) {
        case PixelFormat::yuv420p:
            return yuv420p;
        case PixelFormat::nv12:
            return nv12;
        case PixelFormat::yuyv:
            return yuyv;
        case PixelFormat::rgb24:
            return rgb24;
        case PixelFormat::gray8:
            return gray8;
    }
    return nullptr;
}

}  // namespace compass_edge::scalar
