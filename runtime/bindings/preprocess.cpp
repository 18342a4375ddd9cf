// Python's view of kernels/: Preprocessor, smart_resize and the instruction sets.
#include "kernels/preprocess.hpp"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kernels/smart_resize.hpp"

namespace py = pybind11;

namespace compass_edge {
namespace {

template <class Value, std::size_t Count>
Value parse(const std::string& what, const std::string& text, const std::pair<const char*, Value> (&names)[Count]) {
    std::string list;
    for (const auto& [name, value] : names) {
        if (text == name) return value;
        if (!list.empty()) list += ", ";
        list += name;
    }
    throw std::invalid_argument("Expected a " + what + " of " + list + ", got '" + text + "'.");
}

Dtype parse_dtype(const std::string& text) {
    return parse<Dtype>("dtype", text, {{"f32", Dtype::f32}, {"f16", Dtype::f16}, {"bf16", Dtype::bf16}});
}

PixelFormat parse_format(const std::string& text) {
    return parse<PixelFormat>("pixel format", text,
                              {{"yuv420p", PixelFormat::yuv420p},
                               {"nv12", PixelFormat::nv12},
                               {"yuyv", PixelFormat::yuyv},
                               {"rgb24", PixelFormat::rgb24},
                               {"gray8", PixelFormat::gray8}});
}

ColorMatrix parse_matrix(const std::string& text) {
    return parse<ColorMatrix>(
        "matrix", text, {{"bt601", ColorMatrix::bt601}, {"bt709", ColorMatrix::bt709}, {"bt2020", ColorMatrix::bt2020}});
}

ColorRange parse_range(const std::string& text) {
    return parse<ColorRange>("range", text, {{"limited", ColorRange::limited}, {"full", ColorRange::full}});
}

// numpy has no bf16: its bits travel as uint16.
py::dtype numpy_dtype(Dtype dtype) { return py::dtype(dtype == Dtype::f32 ? "f4" : dtype == Dtype::f16 ? "f2" : "u2"); }

std::string describe(const py::array& array) {
    return py::str(array.dtype()).cast<std::string>() + " of shape " +
           py::str(array.attr("shape")).cast<std::string>() + " and strides " +
           py::str(array.attr("strides")).cast<std::string>();
}

// image is checked against the memory behind it: a view into an array must not claim more than the array holds.
ImageView rgb_view(const py::array& image) {
    const bool gray = image.ndim() == 2;
    const bool rgb = image.ndim() == 3 && image.shape(2) == 3 && image.strides(2) == 1;
    const bool dense = image.ndim() >= 2 && (gray ? image.strides(1) == 1 : rgb && image.strides(1) == 3);
    if (!image.dtype().is(py::dtype::of<std::uint8_t>()) || !(gray || rgb) || !dense) {
        throw std::invalid_argument("Expected a uint8 picture of shape (H, W, 3) or (H, W) whose pixels are side by side, "
                                    "got " + describe(image) + ". numpy.ascontiguousarray(picture) makes one.");
    }
    if (image.shape(0) > kLongestSide || image.shape(1) > kLongestSide) {
        throw std::invalid_argument("Expected at most " + std::to_string(kLongestSide) + " pixels a side, got " +
                                    describe(image) + ".");
    }
    ImageView view;
    view.format = gray ? PixelFormat::gray8 : PixelFormat::rgb24;
    view.range = ColorRange::full;   // an array's levels are what they are
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
        if (!plane.dtype().is(py::dtype::of<std::uint8_t>()) || plane.ndim() != 2 || plane.shape(0) < extent.rows ||
            plane.shape(1) < extent.row_bytes || (plane.shape(1) > 1 && plane.strides(1) != 1)) {
            throw std::invalid_argument("Expected plane " + std::to_string(i) + " of a " + format + " picture of " +
                                        std::to_string(width) + "x" + std::to_string(height) + " as uint8 of at least (" +
                                        std::to_string(extent.rows) + ", " + std::to_string(extent.row_bytes) +
                                        ") with bytes side by side, got " + describe(plane) + ".");
        }
        view.data[i] = static_cast<const std::uint8_t*>(plane.data());
        view.stride[i] = plane.strides(0);
    }
    return view;
}

py::array output(const Preprocessor& preprocess, const PatchGrid& grid, const py::object& out) {
    const py::ssize_t rows = grid.rows(), columns = preprocess.spec().columns();
    const py::dtype dtype = numpy_dtype(preprocess.dtype());
    if (out.is_none()) {
        // Aligned beyond numpy's 16 bytes, so that a large output can be streamed.
        constexpr auto alignment = std::align_val_t{64};
        const std::size_t size = static_cast<std::size_t>(rows) * columns * bytes(preprocess.dtype());
        void* memory = ::operator new(size, alignment);
        const py::capsule owner(memory, [](void* p) { ::operator delete(p, std::align_val_t{64}); });
        return py::array(dtype, std::vector<py::ssize_t>{rows, columns}, memory, owner);
    }
    if (!py::isinstance<py::array>(out)) {
        throw std::invalid_argument("Expected out to be a numpy array or None.");
    }
    py::array array = py::reinterpret_borrow<py::array>(out);
    const bool contiguous = (array.flags() & py::array::c_style) != 0;
    if (!array.dtype().equal(dtype) || array.ndim() != 2 || array.shape(0) != rows || array.shape(1) != columns ||
        !contiguous || !array.writeable()) {
        throw std::invalid_argument("Expected out to be a writable C-contiguous array of " +
                                    py::str(dtype).cast<std::string>() + " and shape (" + std::to_string(rows) + ", " +
                                    std::to_string(columns) + "), got " + describe(array) +
                                    (array.writeable() ? "." : ", read-only.") + " Pass None to have one made.");
    }
    return array;
}

}  // namespace

// Runs `preprocess` over a picture somebody keeps alive for the length of the call, without the GIL. A native Frame's
// binding calls this with the frame's view. A Preprocessor is not thread-safe, and the GIL no longer guards it here.
py::array run(Preprocessor& preprocess, const ImageView& image, const py::object& out) {
    py::array array = output(preprocess, preprocess.grid(image.width, image.height), out);
    void* data = array.mutable_data();
    const auto size = static_cast<std::size_t>(array.nbytes());
    {
        const py::gil_scoped_release release;
        preprocess.run(image, data, size);
    }
    return array;
}

void register_preprocess(py::module_& m) {
    using Floats = std::array<float, 3>;
    const PatchSpec defaults;
    py::class_<Preprocessor>(m, "Preprocessor",
                             "One pass from a picture to the patches a Qwen-VL vision tower reads. One a thread.")
        .def(py::init([](int patch, int merge, int temporal, long min_pixels, long max_pixels, Floats mean, Floats std,
                         const std::string& dtype, const std::optional<std::string>& isa) {
                 const PatchSpec spec{patch, merge, temporal, min_pixels, max_pixels, mean, std};
                 return Preprocessor(spec, parse_dtype(dtype), isa ? parse_isa(*isa) : current_isa());
             }),
             py::kw_only(), py::arg("patch") = defaults.patch, py::arg("merge") = defaults.merge,
             py::arg("temporal") = defaults.temporal, py::arg("min_pixels") = defaults.min_pixels,
             py::arg("max_pixels") = defaults.max_pixels, py::arg("mean") = defaults.mean, py::arg("std") = defaults.std,
             py::arg("dtype") = "f16", py::arg("isa") = py::none())
        .def("grid",
             [](const Preprocessor& self, int width, int height) {
                 const PatchGrid grid = self.grid(width, height);
                 return std::pair(grid.height, grid.width);
             },
             py::arg("width"), py::arg("height"), "Patches down and across: image_grid_thw is (1, *grid).")
        .def_property_readonly("columns", [](const Preprocessor& self) { return self.spec().columns(); })
        .def_property_readonly("dtype", [](const Preprocessor& self) { return std::string(name(self.dtype())); })
        .def_property_readonly("isa", [](const Preprocessor& self) { return std::string(name(self.isa())); })
        .def("run_rgb",
             [](Preprocessor& self, const py::array& image, const py::object& out) {
                 return run(self, rgb_view(image), out);
             },
             py::arg("image"), py::arg("out") = py::none(), "A uint8 (H, W, 3) RGB or (H, W) gray array.")
        .def("run_planes",
             [](Preprocessor& self, const std::vector<py::array>& planes, const std::string& format, int width, int height,
                const std::string& matrix, const std::string& range, const py::object& out) {
                 return run(self, plane_view(planes, format, width, height, matrix, range), out);
             },
             py::arg("planes"), py::arg("format"), py::arg("width"), py::arg("height"), py::arg("matrix") = "bt601",
             py::arg("range") = "limited", py::arg("out") = py::none(), "Two-dimensional uint8 planes of bytes.");

    m.def("smart_resize",
          [](int width, int height, int factor, long min_pixels, long max_pixels) {
              const PictureSize size = smart_resize(width, height, factor, min_pixels, max_pixels);
              return std::pair(size.width, size.height);
          },
          py::arg("width"), py::arg("height"), py::arg("factor") = defaults.factor(),
          py::arg("min_pixels") = defaults.min_pixels, py::arg("max_pixels") = defaults.max_pixels,
          "The (width, height) a Qwen-VL model resizes a picture to.");
    m.def("isa", [] { return std::string(name(current_isa())); }, "The instruction set the kernels use.");
    m.def("available_isas", [] {
        std::vector<std::string> names;
        for (const Isa isa : available_isas()) names.emplace_back(name(isa));
        return names;
    });
}

}  // namespace compass_edge
