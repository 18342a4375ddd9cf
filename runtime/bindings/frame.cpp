// Python's Frame and Plane: read-only, zero-copy views that hold a lease until they are garbage.
#include "runtime/bindings/frame.hpp"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <array>
#include <optional>
#include <vector>

#include "kernels/color.hpp"
#include "runtime/bindings/dlpack.hpp"
#include "runtime/bindings/image.hpp"
#include "runtime/clock.hpp"
#include "runtime/error.hpp"

namespace py = pybind11;

namespace compass_edge {

const FrameRef& PyFrame::frame() const {
    if (!frame_) throw Error(Fault::usage, "This frame was released: take it from the ring again.");
    return *frame_;
}

namespace {

// One plane as a strided block of bytes: (rows, row bytes), and (H, W, 3) for rgb24.
struct Plane {
    std::shared_ptr<FrameRef> owner;
    const std::uint8_t* data;
    std::vector<py::ssize_t> shape;
    std::vector<py::ssize_t> strides;
};

Plane plane_of(const PyFrame& self, int index) {
    const ImageView view = self.frame().view();
    if (index < 0 || index >= plane_count(view.format)) {
        throw Error(Fault::usage, "A " + std::string(name(view.format)) + " frame has planes 0 to " +
                                      std::to_string(plane_count(view.format) - 1) + ", asked for " +
                                      std::to_string(index) + ".");
    }
    const PlaneExtent extent = plane_extent(view.format, index, view.width, view.height);
    Plane plane{self.share(), view.data[index], {extent.rows, extent.row_bytes}, {view.stride[index], 1}};
    if (view.format == PixelFormat::rgb24) {
        plane.shape = {extent.rows, view.width, 3};
        plane.strides = {view.stride[index], 3, 1};
    }
    return plane;
}

py::array plane_array(const PyFrame& self, int index) {
    const py::object plane = py::cast(plane_of(self, index));
    return py::module_::import("numpy").attr("asarray")(plane);
}

struct ExportedPlane {
    dlpack::ManagedTensor managed;
    std::shared_ptr<FrameRef> owner;
    std::array<std::int64_t, 3> shape;
    std::array<std::int64_t, 3> strides;
};

py::capsule to_dlpack(const Plane& plane, const py::object&, const std::optional<std::pair<int, int>>& max_version,
                      const py::object&, const std::optional<bool>& copy) {
    if (!max_version || max_version->first < 1) {
        PyErr_SetString(
            PyExc_BufferError,
            "Frames are read-only, which only DLPack 1.0 can say: the consumer must pass max_version=(1, 0) "
            "or later (numpy >= 2.1, torch >= 2.9). numpy.asarray(plane) always works.");
        throw py::error_already_set();
    }
    if (copy.value_or(false)) {
        PyErr_SetString(PyExc_BufferError, "A frame is exported without a copy: copy the tensor after importing it.");
        throw py::error_already_set();
    }
    auto* out = new ExportedPlane{{}, plane.owner, {}, {}};
    std::copy(plane.shape.begin(), plane.shape.end(), out->shape.begin());
    std::copy(plane.strides.begin(), plane.strides.end(), out->strides.begin());
    out->managed.version = {1, 0};
    out->managed.manager = out;
    out->managed.deleter = [](dlpack::ManagedTensor* self) { delete static_cast<ExportedPlane*>(self->manager); };
    out->managed.flags = dlpack::flag_read_only;
    out->managed.tensor = {const_cast<std::uint8_t*>(plane.data),
                           {dlpack::device_cpu, 0},
                           static_cast<std::int32_t>(plane.shape.size()),
                           {dlpack::code_unsigned, 8, 1},
                           out->shape.data(),
                           out->strides.data(),
                           0};
    // A consumer renames the capsule when it takes the tensor over; an unused one is ours to delete.
    return py::reinterpret_steal<py::capsule>(PyCapsule_New(&out->managed, dlpack::capsule_name, [](PyObject* capsule) {
        if (!PyCapsule_IsValid(capsule, dlpack::capsule_name)) return;
        auto* managed = static_cast<dlpack::ManagedTensor*>(PyCapsule_GetPointer(capsule, dlpack::capsule_name));
        managed->deleter(managed);
    }));
}

py::array_t<std::uint8_t> rgb_of(const PyFrame& self) {
    const FrameRef& frame = self.frame();
    const ImageView view = frame.view();
    py::array_t<std::uint8_t> rgb({view.height, view.width, 3});
    std::uint8_t* out = rgb.mutable_data();
    const py::gil_scoped_release release;
    const ConvertRow convert = row_converter(view.format, current_isa());
    const ColorCoefficients coefficients = color_coefficients(view.matrix, view.range);
    const int planes = converted_planes(view.format);
    const std::size_t stride = round_up(static_cast<std::size_t>(view.width), kRowAlignment);
    std::vector<std::uint8_t> row(3 * stride + kRowAlignment);
    for (int y = 0; y < view.height; ++y) {
        convert(picture_row(view, y), view.width, coefficients, row.data(), static_cast<std::ptrdiff_t>(stride));
        for (int x = 0; x < view.width; ++x) {
            for (int channel = 0; channel < 3; ++channel) {
                *out++ =
                    row[static_cast<std::size_t>(planes == 1 ? 0 : channel) * stride + static_cast<std::size_t>(x)];
            }
        }
    }
    return rgb;
}

std::optional<std::int64_t> pts_of(const PyFrame& self) {
    const std::int64_t pts = self.frame().info().stamp.pts;
    return pts == no_pts ? std::nullopt : std::optional(pts);
}

std::optional<double> time_of(const PyFrame& self) {
    const Stamp& stamp = self.frame().info().stamp;
    if (stamp.pts == no_pts) return std::nullopt;
    return static_cast<double>(stamp.pts) * stamp.time_base_num / stamp.time_base_den;
}

std::string text_of(const PyFrame& self) {
    const FrameInfo& info = self.frame().info();
    return "<Frame " + std::to_string(info.seq) + ": " + std::to_string(info.geometry.width) + "x" +
           std::to_string(info.geometry.height) + " " + std::string(name(info.geometry.format)) + ">";
}

template <class Get>
auto from_info(Get get) {
    return [get](const PyFrame& self) { return get(self.frame().info()); };
}

}  // namespace

void register_frame(py::module_& m) {
    py::class_<Plane>(m, "Plane", py::buffer_protocol(), "One plane of a frame: read-only bytes, by buffer or DLPack.")
        .def_buffer([](Plane& self) {
            return py::buffer_info(const_cast<std::uint8_t*>(self.data), 1, "B",
                                   static_cast<py::ssize_t>(self.shape.size()), self.shape, self.strides, true);
        })
        .def("__dlpack__", &to_dlpack, py::kw_only(), py::arg("stream") = py::none(),
             py::arg("max_version") = py::none(), py::arg("dl_device") = py::none(), py::arg("copy") = py::none())
        .def("__dlpack_device__", [](const Plane&) { return std::pair(dlpack::device_cpu, 0); });

    py::class_<PyFrame>(m, "Frame", "A lease on one frame. Its pixels stay as they are while any view of it lives.")
        .def_property_readonly("seq", from_info([](const FrameInfo& i) { return i.seq; }))
        .def_property_readonly("captured_ns", from_info([](const FrameInfo& i) { return i.stamp.captured_ns; }),
                               "When it was taken from its source, on the clock of monotonic_ns().")
        .def_property_readonly("age_s", from_info([](const FrameInfo& i) {
                                   return static_cast<double>(monotonic_ns() - i.stamp.captured_ns) / 1e9;
                               }))
        .def_property_readonly("pts", &pts_of, "Presentation time in units of time_base, None when unknown.")
        .def_property_readonly("time_base", from_info([](const FrameInfo& i) {
                                   return std::pair(i.stamp.time_base_num, i.stamp.time_base_den);
                               }))
        .def_property_readonly("time", &time_of, "Presentation time in seconds, None when unknown.")
        .def_property_readonly("source", from_info([](const FrameInfo& i) { return i.stamp.source; }))
        .def_property_readonly("gap_before",
                               from_info([](const FrameInfo& i) { return (i.stamp.flags & frame_gap_before) != 0; }))
        .def_property_readonly("damaged",
                               from_info([](const FrameInfo& i) { return (i.stamp.flags & frame_damaged) != 0; }))
        .def_property_readonly("width", from_info([](const FrameInfo& i) { return i.geometry.width; }))
        .def_property_readonly("height", from_info([](const FrameInfo& i) { return i.geometry.height; }))
        .def_property_readonly("format",
                               from_info([](const FrameInfo& i) { return std::string(name(i.geometry.format)); }))
        .def_property_readonly("matrix", from_info([](const FrameInfo& i) { return matrix_name(i.geometry.matrix); }))
        .def_property_readonly("range", from_info([](const FrameInfo& i) { return range_name(i.geometry.range); }))
        .def("plane", &plane_of, py::arg("index") = 0)
        .def_property_readonly(
            "planes",
            [](const PyFrame& self) {
                py::tuple planes(plane_count(self.frame().info().geometry.format));
                for (std::size_t i = 0; i < planes.size(); ++i) {
                    planes[i] = plane_array(self, static_cast<int>(i));
                }
                return planes;
            },
            "The planes as read-only numpy arrays of bytes, not copied.")
        .def("rgb", &rgb_of, "A new (H, W, 3) uint8 array.")
        .def("release", &PyFrame::release, "Gives up this object's share of the lease; views keep theirs.")
        .def(
            "__enter__", [](PyFrame& self) -> PyFrame& { return self; }, py::return_value_policy::reference_internal)
        .def("__exit__", [](PyFrame& self, const py::args&) { self.release(); })
        .def("__repr__", &text_of);
}

}  // namespace compass_edge
