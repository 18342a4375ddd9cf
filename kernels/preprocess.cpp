#include "kernels/preprocess.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/color.hpp"
#include "kernels/patchify.hpp"
#include "kernels/preprocess_check.hpp"
#include "kernels/resize.hpp"
#include "kernels/smart_resize.hpp"

namespace compass_edge {
namespace {

// From this many bytes on, the output is written past the caches. Measured with the output read afterwards: below, it
// is still in a cache when the engine reads it; above, reading each line before it is overwritten costs more than that.
constexpr std::size_t kStreamedBytes = 6u << 20;
constexpr std::size_t kStreamAlignment = 64;

// A plane's row with room for the kernels' whole vectors. An odd number of cache lines, so that the rows of a patch do
// not all fall into the same set of the first-level cache.
std::ptrdiff_t padded(int width) {
    const std::ptrdiff_t lines = (width + kRowAlignment - 1) / kRowAlignment + 1;
    return (lines | 1) * kRowAlignment;
}

}  // namespace

// One picture geometry, and the rows in flight: a picture row (only if it is resized horizontally), the rows the
// vertical pass still reads (only if there is one) and one row of patches. That is what stays in the cache while a
// frame passes.
struct Preprocessor::Plan {
    PatchSpec spec;
    Dtype dtype;
    Isa isa;
    Normaliser normaliser;
    HorizontalPass resize_row;
    VerticalPass resize_column;
    PatchifyBand patchify;

    PixelFormat format = PixelFormat::rgb24;
    int width = 0, height = 0, planes = 0;
    PatchGrid grid;
    ConvertRow convert = nullptr;
    ResizeAxis horizontal_axis, vertical_axis;
    AxisView horizontal{}, vertical{};
    std::vector<std::uint8_t> memory;
    std::ptrdiff_t in_stride = 0, out_stride = 0, row_bytes = 0;
    std::uint8_t *picture_row = nullptr, *ring = nullptr, *band = nullptr;
    std::vector<const std::uint8_t*> taps;

    Plan(const PatchSpec& s, Dtype d, Isa i)
        : spec(s),
          dtype(d),
          isa(i),
          normaliser(make_normaliser(s.mean, s.std, d)),
          resize_row(horizontal_pass(i)),
          resize_column(vertical_pass(i)),
          patchify(band_patchifier(d, normaliser.form, s.patch, i)) {}

    PatchGrid grid_of(int w, int h) const {
        const PictureSize size = smart_resize(w, h, spec.factor(), spec.min_pixels, spec.max_pixels);
        return {size.height / spec.patch, size.width / spec.patch};
    }

    bool fits(const ImageView& image) const {
        return image.format == format && image.width == width && image.height == height;
    }

    void fit(const ImageView& image);
    void convert_row(const ImageView& image, const ColorCoefficients& coefficients, int y, std::uint8_t* out) const;
    void run(const ImageView& image, std::uint8_t* out);
};

void Preprocessor::Plan::fit(const ImageView& image) {
    width = 0;  // if anything below throws, the next run plans again
    grid = grid_of(image.width, image.height);
    const int out_width = grid.width * spec.patch, out_height = grid.height * spec.patch;
    convert = row_converter(image.format, isa);
    planes = converted_planes(image.format);
    horizontal_axis = ResizeAxis(image.width, out_width);
    vertical_axis = ResizeAxis(image.height, out_height);
    horizontal = horizontal_axis.view();
    vertical = vertical_axis.view();
    in_stride = padded(image.width);
    out_stride = padded(out_width);
    row_bytes = planes * out_stride;
    taps.resize(static_cast<std::size_t>(vertical.taps));

    const std::ptrdiff_t picture_bytes = horizontal_axis.identity() ? 0 : planes * in_stride;
    const std::ptrdiff_t ring_bytes = vertical_axis.identity() ? 0 : vertical.taps * row_bytes;
    const std::ptrdiff_t band_bytes = spec.patch * row_bytes;
    memory.assign(static_cast<std::size_t>(picture_bytes + ring_bytes + band_bytes + kRowAlignment), 0);
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    picture_row = memory.data() + (kRowAlignment - address % kRowAlignment) % kRowAlignment;
    ring = picture_row + picture_bytes;
    band = ring + ring_bytes;
    format = image.format;
    width = image.width;
    height = image.height;
}

void Preprocessor::Plan::convert_row(const ImageView& image, const ColorCoefficients& coefficients, int y,
                                     std::uint8_t* out) const {
    const PictureRow row = compass_edge::picture_row(image, y);
    if (horizontal_axis.identity()) {
        convert(row, width, coefficients, out, out_stride);
    } else {
        convert(row, width, coefficients, picture_row, in_stride);
        resize_row(picture_row, in_stride, planes, horizontal, out, out_stride);
    }
}

void Preprocessor::Plan::run(const ImageView& image, std::uint8_t* out) {
    const ColorCoefficients coefficients = color_coefficients(image.matrix, image.range);
    const std::ptrdiff_t plane_stride = planes == 1 ? 0 : out_stride;
    const auto patch_bytes = static_cast<std::ptrdiff_t>(spec.columns() * bytes(dtype));
    const bool stream = reinterpret_cast<std::uintptr_t>(out) % kStreamAlignment == 0 &&
                        static_cast<std::size_t>(grid.rows() * patch_bytes) >= kStreamedBytes;
    const PatchBand patches{band, row_bytes, plane_stride, spec.patch, spec.merge, spec.temporal, grid.width, stream};
    int converted = 0;  // picture rows that have entered the ring
    for (int grid_y = 0; grid_y < grid.height; ++grid_y) {
        for (int row = 0; row < spec.patch; ++row) {
            std::uint8_t* to = band + row * row_bytes;
            const int y = grid_y * spec.patch + row;
            if (vertical_axis.identity()) {
                convert_row(image, coefficients, y, to);
                continue;
            }
            const int first = vertical.start[y], count = vertical.count[y];
            for (converted = std::max(converted, first); converted < first + count; ++converted) {
                convert_row(image, coefficients, converted, ring + converted % vertical.taps * row_bytes);
            }
            for (int tap = 0; tap < count; ++tap) taps[tap] = ring + (first + tap) % vertical.taps * row_bytes;
            resize_column(taps.data(), vertical.weights + static_cast<std::ptrdiff_t>(y) * vertical.taps, count,
                          vertical.precision, static_cast<int>(row_bytes), to);
        }
        // [gh / m, gw / m, m, m]: a row of patches begins where its merge blocks do.
        const std::ptrdiff_t first = grid_y / spec.merge * spec.merge * grid.width + grid_y % spec.merge * spec.merge;
        patchify(patches, normaliser, out + first * patch_bytes);
    }
}

Preprocessor::Preprocessor(const PatchSpec& spec, Dtype dtype, Isa isa) {
    check_spec(spec);
    plan_ = std::make_unique<Plan>(spec, dtype, parse_isa(name(isa)));
}
Preprocessor::~Preprocessor() = default;
Preprocessor::Preprocessor(Preprocessor&&) noexcept = default;
Preprocessor& Preprocessor::operator=(Preprocessor&&) noexcept = default;

const PatchSpec& Preprocessor::spec() const { return plan_->spec; }
Dtype Preprocessor::dtype() const { return plan_->dtype; }
Isa Preprocessor::isa() const { return plan_->isa; }
PatchGrid Preprocessor::grid(int width, int height) const { return plan_->grid_of(width, height); }

void Preprocessor::run(const ImageView& image, void* out, std::size_t out_bytes) {
    check_image(image);
    const PatchGrid grid = plan_->fits(image) ? plan_->grid : plan_->grid_of(image.width, image.height);
    check_out(out, out_bytes, grid, plan_->spec, plan_->dtype);
    if (!plan_->fits(image)) plan_->fit(image);
    plan_->run(image, static_cast<std::uint8_t*>(out));
}

}  // namespace compass_edge
