#include "runtime/bindings/image.hpp"

#include <stdexcept>

#include "kernels/smart_resize.hpp"

namespace py = pybind11;

namespace compass_edge {

PixelFormat parse_format(const std::string& text) {
    return parse_name<PixelFormat>("pixel format", text,
                                   {{"yuv420p", PixelFormat::yuv420p},
                                    {"nv12", PixelFormat::nv12},
                                    {"yuyv", PixelFormat::yuyv},
                                    {"rgb24", PixelFormat::rgb24},
                                    {"gray8", PixelFormat::gray8}});
}

ColorMatrix parse_matrix(const std::string& text) {
    return parse_name<ColorMatrix>(
        "matrix", text,
        {{"bt601", ColorMatrix::bt601}, {"bt709", ColorMatrix::bt709}, {"bt2020", ColorMatrix::bt2020}});
}

ColorRange parse_range(const std::string& text) {
    return parse_name<ColorRange>("range", text, {{"limited", ColorRange::limited}, {"full", ColorRange::full}});
}

Dtype parse_dtype(const std::string& text) {
    return parse_name<Dtype>("dtype", text, {{"f32", Dtype::f32}, {"f16", Dtype::f16}, {"bf16", Dtype::bf16}});
}

std::string describe(const py::array& array) {
    return py::str(array.dtype()).cast<std::string>() + " of shape " +
           py::str(array.attr("shape")).cast<std::string>() + " and strides " +
           py::str(array.attr("strides")).cast<std::string>();
}

ImageView array_view(const py::array& image) {
    const bool gray = image.ndim() == 2;
    const bool rgb = image.ndim() == 3 && image.shape(2) == 3 && image.strides(2) == 1;
    const bool dense = image.ndim() >= 2 && (gray ? image.strides(1) == 1 : rgb && image.strides(1) == 3);
    if (!image.dtype().equal(py::dtype::of<std::uint8_t>()) || !(gray || rgb) || !dense) {
        throw std::invalid_argument(
            "Expected a uint8 picture of shape (H, W, 3) or (H, W) whose pixels are side by side, "
            "got " +
            describe(image) + ". numpy.ascontiguousarray(picture) makes one.");
    }
    if (image.shape(0) > kLongestSide || image.shape(1) > kLongestSide) {
        throw std::invalid_argument("Expected at most " + std::to_string(kLongestSide) + " pixels a side, got " +
                                    describe(image) + ".");
    }
    ImageView view;
    view.format = gray ? PixelFormat::gray8 : PixelFormat::rgb24;
    view.range = ColorRange::full;  // an array's levels are what they are
    view.width = static_cast<int>(image.shape(1));
    view.height = static_cast<int>(image.shape(0));
    view.data[0] = static_cast<const std::uint8_t*>(image.data());
    view.stride[0] = image.strides(0);
    return view;
}

ImageView plane_view(const std::vector<py::array>& planes, const std::string& format, int width, int height,
                     const std::string& matrix, const std::string& range) {
    ImageView view;
    view.format = parse_format(format);
    view.matrix = parse_matrix(matrix);
    view.range = parse_range(range);
    view.width = width;
    view.height = height;
    const auto expected = static_cast<std::size_t>(plane_count(view.format));
    if (planes.size() != expected) {
        throw std::invalid_argument("Expected " + std::to_string(expected) + " planes for " + format + ", got " +
                                    std::to_string(planes.size()) + ".");
    }
    for (std::size_t i = 0; i < expected; ++i) {
        const py::array& plane = planes[i];
        const PlaneExtent extent = plane_extent(view.format, static_cast<int>(i), width, height);
        if (!plane.dtype().equal(py::dtype::of<std::uint8_t>()) || plane.ndim() != 2 || plane.shape(0) < extent.rows ||
            plane.shape(1) < extent.row_bytes || (plane.shape(1) > 1 && plane.strides(1) != 1)) {
            throw std::invalid_argument(
                "Expected plane " + std::to_string(i) + " of a " + format + " picture of " + std::to_string(width) +
                "x" + std::to_string(height) + " as uint8 of at least (" + std::to_string(extent.rows) + ", " +
                std::to_string(extent.row_bytes) + ") with bytes side by side, got " + describe(plane) + ".");
        }
        view.data[i] = static_cast<const std::uint8_t*>(plane.data());
        view.stride[i] = plane.strides(0);
    }
    return view;
}

const char* matrix_name(ColorMatrix matrix) {
    return matrix == ColorMatrix::bt709 ? "bt709" : matrix == ColorMatrix::bt2020 ? "bt2020" : "bt601";
}

const char* range_name(ColorRange range) { return range == ColorRange::full ? "full" : "limited"; }

}  // namespace compass_edge
