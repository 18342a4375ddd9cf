#include "kernels/color.hpp"

#include <cmath>
#include <random>
#include <vector>

#include "tests/cpp/check.hpp"

using namespace compass_edge;

namespace {

constexpr PixelFormat kFormats[] = {PixelFormat::yuv420p, PixelFormat::nv12, PixelFormat::yuyv, PixelFormat::rgb24,
                                    PixelFormat::gray8};
constexpr ColorMatrix kMatrices[] = {ColorMatrix::bt601, ColorMatrix::bt709, ColorMatrix::bt2020};
constexpr ColorRange kRanges[] = {ColorRange::limited, ColorRange::full};

// The planes' rows as separate allocations of exactly their size, so that AddressSanitizer sees one byte too many.
struct Row {
    std::vector<std::vector<std::uint8_t>> planes;

    Row(PixelFormat format, int width, std::mt19937& random) {
        for (int plane = 0; plane < plane_count(format); ++plane) {
            planes.emplace_back(plane_extent(format, plane, width, 1).row_bytes);
            for (auto& byte : planes.back()) byte = static_cast<std::uint8_t>(random());
        }
    }

    PictureRow view() const {
        PictureRow row{};
        for (std::size_t i = 0; i < planes.size(); ++i) row.data[i] = planes[i].data();
        return row;
    }
};

std::vector<std::uint8_t> convert(PixelFormat format, const Row& row, int width, const ColorCoefficients& c, Isa isa) {
    const int stride = (width + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
    std::vector<std::uint8_t> out(static_cast<std::size_t>(converted_planes(format)) * stride);
    row_converter(format, isa)(row.view(), width, c, out.data(), stride);
    std::vector<std::uint8_t> pixels;
    for (int plane = 0; plane < converted_planes(format); ++plane) {
        pixels.insert(pixels.end(), out.begin() + plane * stride, out.begin() + plane * stride + width);
    }
    return pixels;
}

struct Exact {
    double kr, kb;
};
Exact exact(ColorMatrix matrix) {
    if (matrix == ColorMatrix::bt601) return {0.299, 0.114};
    return matrix == ColorMatrix::bt709 ? Exact{0.2126, 0.0722} : Exact{0.2627, 0.0593};
}

double level(double value) { return std::nearbyint(std::min(255.0, std::max(0.0, value))); }

}  // namespace

TEST(every_instruction_set_gives_the_scalar_bits) {
    std::mt19937 random(1);
    for (const Isa isa : available_isas()) {
        for (const PixelFormat format : kFormats) {
            for (int width = 1; width < 300; width += width < 140 ? 1 : 13) {
                const Row row(format, width, random);
                const ColorCoefficients c = color_coefficients(kMatrices[random() % 3], kRanges[random() % 2]);
                CHECK(convert(format, row, width, c, isa) == convert(format, row, width, c, Isa::scalar));
            }
        }
    }
}

TEST(within_one_level_of_the_exact_formula) {
    for (const ColorMatrix matrix : kMatrices) {
        for (const ColorRange range : kRanges) {
            const ColorCoefficients c = color_coefficients(matrix, range);
            const auto [kr, kb] = exact(matrix);
            const bool limited = range == ColorRange::limited;
            long different = 0, all = 0;
            for (int y = 0; y < 256; ++y) {
                for (int u = 0; u < 256; u += 5) {
                    for (int v = 0; v < 256; v += 5) {
                        const double luma = limited ? (y - 16) * 255.0 / 219.0 : y;
                        const double cb = (u - 128) * (limited ? 255.0 / 224.0 : 1.0);
                        const double cr = (v - 128) * (limited ? 255.0 / 224.0 : 1.0);
                        const double red = level(luma + 2 * (1 - kr) * cr), blue = level(luma + 2 * (1 - kb) * cb);
                        const double green = level(luma - 2 * kb * (1 - kb) / (1 - kr - kb) * cb -
                                                   2 * kr * (1 - kr) / (1 - kr - kb) * cr);
                        const Rgb rgb = yuv_to_rgb(y, u, v, c);
                        CHECK(std::abs(rgb.red - red) <= 1 && std::abs(rgb.green - green) <= 1 &&
                              std::abs(rgb.blue - blue) <= 1);
                        different += (rgb.red != red) + (rgb.green != green) + (rgb.blue != blue);
                        all += 3;
                    }
                }
            }
            CHECK(different * 40 < all);
        }
    }
}

TEST(black_white_and_gray_are_themselves) {
    for (const ColorMatrix matrix : kMatrices) {
        const ColorCoefficients limited = color_coefficients(matrix, ColorRange::limited);
        const ColorCoefficients full = color_coefficients(matrix, ColorRange::full);
        for (const auto& [y, expected] :
             {std::pair(16, 0), std::pair(235, 255), std::pair(0, 0), std::pair(255, 255)}) {
            const Rgb rgb = yuv_to_rgb(y, 128, 128, limited);
            CHECK(rgb.red == expected && rgb.green == expected && rgb.blue == expected);
        }
        for (int y = 0; y < 256; ++y) {
            const Rgb rgb = yuv_to_rgb(y, 128, 128, full);
            CHECK(rgb.red == y && rgb.green == y && rgb.blue == y);
            CHECK_EQ(int{luma_to_gray(y, full)}, y);
        }
    }
}

TEST(chroma_rows_are_shared_by_two_picture_rows) {
    const std::uint8_t memory[64] = {};
    ImageView image;
    image.format = PixelFormat::nv12;
    image.data = {memory, memory + 32, nullptr};
    image.stride = {4, 4, 0};
    CHECK(picture_row(image, 2).data[1] == memory + 36);
    CHECK(picture_row(image, 3).data[1] == memory + 36);
    CHECK(picture_row(image, 3).data[0] == memory + 12);
}

int main(int argc, char** argv) { return check::run(argc, argv); }
