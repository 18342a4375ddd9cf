// Python's FramePatcher: a frame to patches at an address, on the GPU or on its twin on the host.
#include "runtime/frame_patcher.hpp"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <mutex>

#include "runtime/bindings/frame.hpp"
#include "runtime/bindings/image.hpp"
#include "runtime/error.hpp"

namespace py = pybind11;

namespace compass_edge {
namespace {

std::unique_ptr<PatchDevice> open_device(const std::string& device, const PatchSpec& spec, Dtype dtype,
                                         std::uintptr_t stream) {
    if (device == "host") return open_host_device(spec, dtype);
    if (device == "cuda") return open_cuda_device(spec, dtype, reinterpret_cast<CUstream_st*>(stream));
    throw Error(Fault::usage, "Patches are made on \"cuda\" or \"host\", and '" + device + "' was asked for.");
}

struct GuardedPatcher : FramePatcher {
    using FramePatcher::FramePatcher;
    std::mutex busy;
};

}  // namespace

void register_frame_patcher(py::module_& m) {
    using Floats = std::array<float, 3>;
    const PatchSpec defaults;
    py::class_<GuardedPatcher>(
        m, "FramePatcher",
        "From a frame to patches in a device's memory, without an RGB picture on the host. One a thread and stream.")
        .def(py::init([](const std::string& device, std::uintptr_t stream, int patch, int merge, int temporal,
                         long min_pixels, long max_pixels, Floats mean, Floats std, const std::string& dtype) {
                 const PatchSpec spec{patch, merge, temporal, min_pixels, max_pixels, mean, std};
                 return std::make_unique<GuardedPatcher>(open_device(device, spec, parse_dtype(dtype), stream));
             }),
             py::arg("device"), py::kw_only(), py::arg("stream") = 0, py::arg("patch") = defaults.patch,
             py::arg("merge") = defaults.merge, py::arg("temporal") = defaults.temporal,
             py::arg("min_pixels") = defaults.min_pixels, py::arg("max_pixels") = defaults.max_pixels,
             py::arg("mean") = defaults.mean, py::arg("std") = defaults.std, py::arg("dtype") = "f16")
        .def(
            "enqueue",
            [](GuardedPatcher& self, const PyFrame& frame, std::uintptr_t out, std::size_t count) {
                const std::unique_lock alone(self.busy, std::try_to_lock);
                if (!alone)
                    throw std::invalid_argument(
                        "This FramePatcher is at work on another thread: make one for each thread.");
                frame.frame();  // throws after release()
                const std::shared_ptr<const FrameRef> shared = frame.share();
                const py::gil_scoped_release release;
                self.enqueue(shared, reinterpret_cast<void*>(out), count);
            },
            py::arg("frame"), py::arg("out"), py::arg("bytes"),
            "Returns at once. The frame's lease is kept until the device has read it; `out` is an address in its "
            "memory.")
        .def(
            "finish",
            [](GuardedPatcher& self) {
                const std::lock_guard alone(self.busy);
                self.finish();
            },
            py::call_guard<py::gil_scoped_release>(), "Waits, and gives all leases back.")
        .def_property_readonly("held", [](const GuardedPatcher& self) { return self.held(); })
        .def_property_readonly("stats", [](const GuardedPatcher& self) {
            py::dict dict;
            dict["frames"] = self.stats().frames;
            dict["bytes"] = self.stats().bytes;
            dict["plans"] = self.stats().plans;
            return dict;
        });
    m.attr("built_with_cuda") = built_with_cuda();
}

}  // namespace compass_edge
