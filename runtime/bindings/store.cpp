// Python's FrameStore.
#include "runtime/store.hpp"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>

#include "runtime/bindings/frame.hpp"

namespace py = pybind11;

namespace compass_edge {

namespace {

bool keep(FrameStore& self, const PyFrame& frame) {
    const FrameRef& lease = frame.frame();
    // Another thread may release the Python object during the copy.
    const std::shared_ptr<FrameRef> share = frame.share();
    const py::gil_scoped_release release;
    return self.keep(lease);
}

std::optional<PyFrame> get(FrameStore& self, std::uint64_t seq) {
    FrameRef frame = self.get(seq);
    return frame ? std::optional(PyFrame(std::move(frame))) : std::nullopt;
}

}  // namespace

void register_store(py::module_& m) {
    const StoreOptions defaults;
    py::class_<FrameStore, std::shared_ptr<FrameStore>>(
        m, "FrameStore", "Copies of frames by their numbers, in an amount of memory that is planned at opening.")
        .def(py::init([](std::size_t frame_bytes, int max_frames, std::size_t max_bytes) {
                 return FrameStore::open({frame_bytes, max_frames, max_bytes});
             }),
             py::arg("frame_bytes"), py::kw_only(), py::arg("max_frames") = defaults.max_frames,
             py::arg("max_bytes") = defaults.max_bytes)
        .def("keep", &keep, py::arg("frame"),
             "Copies the frame in under its number. False when every buffer is in use; True when it was there already.")
        .def(
            "drop", [](FrameStore& self, std::uint64_t seq) { self.drop(seq); }, py::arg("seq"),
            "Its memory is free once nobody holds the frame any more.")
        .def("clear", &FrameStore::clear, "Drops every frame.")
        .def("get", &get, py::arg("seq"), "The kept frame of that number, or None.")
        .def_property_readonly("sequence_numbers", &FrameStore::sequence_numbers)
        .def_property_readonly("max_frames", [](const FrameStore& self) { return self.options().max_frames; })
        .def_property_readonly("stats", [](const FrameStore& self) {
            const StoreStats stats = self.stats();
            py::dict dict;
            dict["kept"] = stats.kept;
            dict["refused"] = stats.refused;
            dict["bytes"] = stats.bytes;
            return dict;
        });
}

}  // namespace compass_edge
