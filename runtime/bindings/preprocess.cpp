// Python's view of kernels/: Preprocessor, smart_resize and the instruction sets.
#include "kernels/preprocess.hpp"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kernels/smart_resize.hpp"
#include "runtime/bindings/frame.hpp"
#include "runtime/bindings/image.hpp"

namespace py = pybind11;

namespace compass_edge {
namespace {

// numpy has no bf16: its bits travel as uint16.
py::dtype numpy_dtype(Dtype dtype) { return py::dtype(dtype == Dtype::f32 ? "f4" : dtype == Dtype::f16 ? "f2" : "u2"); }

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

// A Preprocessor is not thread-safe and runs without the GIL: a second thread is told so instead of let in.
struct GuardedPreprocessor : Preprocessor {
    using Preprocessor::Preprocessor;
    std::mutex busy;
};

// Runs over a picture that somebody keeps alive for the length of the call.
py::array run(GuardedPreprocessor& preprocess, const ImageView& image, const py::object& out) {
    const std::unique_lock alone(preprocess.busy, std::try_to_lock);
    if (!alone)
        throw std::invalid_argument("This Preprocessor is at work on another thread: make one for each thread.");
    py::array array = output(preprocess, preprocess.grid(image.width, image.height), out);
    void* data = array.mutable_data();
    const auto size = static_cast<std::size_t>(array.nbytes());
    {
        const py::gil_scoped_release release;
        preprocess.run(image, data, size);
    }
    return array;
}

}  // namespace

void register_preprocess(py::module_& m) {
    using Floats = std::array<float, 3>;
    const PatchSpec defaults;
    py::class_<GuardedPreprocessor>(
        m, "Preprocessor", "One pass from a picture to the patches a Qwen-VL vision tower reads. One a thread.")
        .def(py::init([](int patch, int merge, int temporal, long min_pixels, long max_pixels, Floats mean, Floats std,
                         const std::string& dtype, const std::optional<std::string>& isa) {
                 const PatchSpec spec{patch, merge, temporal, min_pixels, max_pixels, mean, std};
                 return std::make_unique<GuardedPreprocessor>(spec, parse_dtype(dtype),
                                                              isa ? parse_isa(*isa) : current_isa());
             }),
             py::kw_only(), py::arg("patch") = defaults.patch, py::arg("merge") = defaults.merge,
             py::arg("temporal") = defaults.temporal, py::arg("min_pixels") = defaults.min_pixels,
             py::arg("max_pixels") = defaults.max_pixels, py::arg("mean") = defaults.mean,
             py::arg("std") = defaults.std, py::arg("dtype") = "f16", py::arg("isa") = py::none())
        .def(
            "grid",
            [](const GuardedPreprocessor& self, int width, int height) {
                const PatchGrid grid = self.grid(width, height);
                return std::pair(grid.height, grid.width);
            },
            py::arg("width"), py::arg("height"), "Patches down and across: image_grid_thw is (1, *grid).")
        .def_property_readonly("columns", [](const GuardedPreprocessor& self) { return self.spec().columns(); })
        .def_property_readonly("dtype", [](const GuardedPreprocessor& self) { return std::string(name(self.dtype())); })
        .def_property_readonly("isa", [](const GuardedPreprocessor& self) { return std::string(name(self.isa())); })
        .def_property_readonly("merge", [](const GuardedPreprocessor& self) { return self.spec().merge; })
        .def(
            "run",
            [](GuardedPreprocessor& self, const PyFrame& frame, const py::object& out) {
                return run(self, frame.frame().view(), out);
            },
            py::arg("picture"), py::arg("out") = py::none(),
            "The patches of a frame, or of a uint8 (H, W, 3) RGB or (H, W) gray array, written into `out` or a new "
            "array.")
        .def(
            "run",
            [](GuardedPreprocessor& self, const py::array& image, const py::object& out) {
                return run(self, array_view(image), out);
            },
            py::arg("picture"), py::arg("out") = py::none())
        .def(
            "run_planes",
            [](GuardedPreprocessor& self, const std::vector<py::array>& planes, const std::string& format, int width,
               int height, const std::string& matrix, const std::string& range, const py::object& out) {
                return run(self, plane_view(planes, format, width, height, matrix, range), out);
            },
            py::arg("planes"), py::arg("format"), py::arg("width"), py::arg("height"), py::arg("matrix") = "bt601",
            py::arg("range") = "limited", py::arg("out") = py::none(), "Two-dimensional uint8 planes of bytes.");

    m.def(
        "smart_resize",
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
