// Colour, a vector of pixels at a time: even and odd pixels share their chroma, so they are kept apart until the end.
#include "kernels/color.hpp"
#include "kernels/simd.hpp"

namespace compass_edge::COMPASS_EDGE_ISA {
namespace {

struct Matrix {
    I16 luma, bias, red_v, green_u, green_v, blue_u;

    explicit Matrix(const ColorCoefficients& c)
        : luma(splat(c.luma)),
          bias(splat(c.bias)),
          red_v(splat(c.red_v)),
          green_u(splat(c.green_u)),
          green_v(splat(c.green_v)),
          blue_u(splat(c.blue_u)) {}

    I16 luma_of(I16 high) const { return add(rounded_product(halve(high), luma), bias); }
};

struct Planes {
    std::uint8_t* out;
    std::ptrdiff_t stride;
};

// kBytes luma samples with kBytes / 2 samples of each chroma, the latter in the upper halves of 16-bit lanes.
inline void convert(const Matrix& m, U8 y, I16 u_high, I16 v_high, const Planes& planes, int x) {
    const I16 even = m.luma_of(high_even(y)), odd = m.luma_of(high_odd(y));
    const I16 u = flip_sign(u_high), v = flip_sign(v_high);
    const I16 red = rounded_product(v, m.red_v), blue = rounded_product(u, m.blue_u);
    const I16 green = add(rounded_product(u, m.green_u), rounded_product(v, m.green_v));
    store(planes.out + x, pack_levels(add(even, red), add(odd, red)));
    store(planes.out + planes.stride + x, pack_levels(add(even, green), add(odd, green)));
    store(planes.out + 2 * planes.stride + x, pack_levels(add(even, blue), add(odd, blue)));
}

// What a format reads for one vector of pixels. bytes() is how much of each plane that is, in 1 / kBytes.
struct Yuv420p {
    static constexpr int planes = 3;
    static constexpr int bytes[3] = {kBytes, kBytes / 2, kBytes / 2};
    static int row_bytes(int plane, int pixels) { return plane == 0 ? pixels : (pixels + 1) / 2; }
    static void step(const std::uint8_t* const (&p)[3], const Matrix& m, const Planes& out, int x) {
        convert(m, load(p[0]), high_each(p[1]), high_each(p[2]), out, x);
    }
};

struct Nv12 {
    static constexpr int planes = 2;
    static constexpr int bytes[3] = {kBytes, kBytes, 0};
    static int row_bytes(int plane, int pixels) { return plane == 0 ? pixels : (pixels + 1) / 2 * 2; }
    static void step(const std::uint8_t* const (&p)[3], const Matrix& m, const Planes& out, int x) {
        const U8 uv = load(p[1]);
        convert(m, load(p[0]), high_even(uv), high_odd(uv), out, x);
    }
};

struct Yuyv {
    static constexpr int planes = 1;
    static constexpr int bytes[3] = {2 * kBytes, 0, 0};
    static int row_bytes(int, int pixels) { return (pixels + 1) / 2 * 4; }
    static void step(const std::uint8_t* const (&p)[3], const Matrix& m, const Planes& out, int x) {
        U8 y, uv;
        split_yuyv(p[0], y, uv);
        convert(m, y, high_even(uv), high_odd(uv), out, x);
    }
};

struct Rgb24 {
    static constexpr int planes = 1;
    static constexpr int bytes[3] = {3 * kBytes, 0, 0};
    static int row_bytes(int, int pixels) { return 3 * pixels; }
    static void step(const std::uint8_t* const (&p)[3], const Matrix&, const Planes& out, int x) {
        U8 r, g, b;
        split3(p[0], r, g, b);
        store(out.out + x, r);
        store(out.out + out.stride + x, g);
        store(out.out + 2 * out.stride + x, b);
    }
};

struct Gray8 {
    static constexpr int planes = 1;
    static constexpr int bytes[3] = {kBytes, 0, 0};
    static int row_bytes(int, int pixels) { return pixels; }
    static void step(const std::uint8_t* const (&p)[3], const Matrix& m, const Planes& out, int x) {
        const U8 y = load(p[0]);
        store(out.out + x, pack_levels(m.luma_of(high_even(y)), m.luma_of(high_odd(y))));
    }
};

template <class Format>
void convert_row(const PictureRow& row, int width, const ColorCoefficients& coefficients, std::uint8_t* out,
                 std::ptrdiff_t plane_stride) {
    const Matrix matrix(coefficients);
    const Planes planes{out, plane_stride};
    const std::uint8_t* p[3] = {row.data[0], row.data[1], row.data[2]};
    int x = 0;
    for (; x + kBytes <= width; x += kBytes) {
        Format::step(p, matrix, planes, x);
        for (int plane = 0; plane < Format::planes; ++plane) p[plane] += Format::bytes[plane];
    }
    if (x == width) return;
    // The caller's rows end here and may be the last bytes of a mapping: the rest goes through a padded copy.
    std::uint8_t rest[3][3 * kBytes] = {};
    for (int plane = 0; plane < Format::planes; ++plane) {
        std::memcpy(rest[plane], p[plane], static_cast<std::size_t>(Format::row_bytes(plane, width - x)));
    }
    const std::uint8_t* const copy[3] = {rest[0], rest[1], rest[2]};
    Format::step(copy, matrix, planes, x);
}

}  // namespace

ConvertRow row_converter(PixelFormat format) {
    switch (format) {
        case PixelFormat::yuv420p:
            return convert_row<Yuv420p>;
        case PixelFormat::nv12:
            return convert_row<Nv12>;
        case PixelFormat::yuyv:
            return convert_row<Yuyv>;
        case PixelFormat::rgb24:
            return convert_row<Rgb24>;
        case PixelFormat::gray8:
            return convert_row<Gray8>;
    }
    return nullptr;
}

}  // namespace compass_edge::COMPASS_EDGE_ISA
