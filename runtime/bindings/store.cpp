// Python's FrameStore.
#include "runtime/store.hpp"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>

#include "runtime/bindings/frame.hpp"

namespace py = pybind11;

namespace compass_edge {

void register_store(py::module_& m) {
    const StoreOptions defaults;
    py::class_<FrameStore, std::shared_ptr<FrameStore>>(
        m, "FrameStore", "Keeps every n-th frame of an episode, and pinned ones, in a fixed amount of memory.")
        .def(py::init(
                 [](std::size_t frame_bytes, std::uint64_t every, int max_frames, int max_pins, std::size_t max_bytes) {
                     return FrameStore::open({frame_bytes, every, max_frames, max_pins, max_bytes});
                 }),
             py::arg("frame_bytes"), py::kw_only(), py::arg("every") = defaults.every,
             py::arg("max_frames") = defaults.max_frames, py::arg("max_pins") = defaults.max_pins,
             py::arg("max_bytes") = defaults.max_bytes)
        .def("begin", &FrameStore::begin, py::arg("first_seq"), "Starts an episode: drops everything.")
        .def(
            "offer", [](FrameStore& self, const PyFrame& frame) { return self.offer(frame.frame()); }, py::arg("frame"),
            "Keeps a copy when the frame's turn has come; True when it did.")
        .def(
            "pin", [](FrameStore& self, const PyFrame& frame) { self.pin(frame.frame()); }, py::arg("frame"),
            "Keeps a copy whatever its turn, until it is unpinned.")
        .def("unpin", &FrameStore::unpin, py::arg("seq"))
        .def(
            "get",
            [](FrameStore& self, std::uint64_t seq) {
                FrameRef frame = self.get(seq);
                return frame ? std::optional(PyFrame(std::move(frame))) : std::nullopt;
            },
            py::arg("seq"), "The kept frame of that number, or None.")
        .def_property_readonly("sequence_numbers", &FrameStore::sequence_numbers)
        .def_property_readonly("max_frames", [](const FrameStore& self) { return self.options().max_frames; })
        .def_property_readonly("stats", [](const FrameStore& self) {
            const StoreStats stats = self.stats();
            py::dict dict;
            dict["kept"] = stats.kept;
            dict["pinned"] = stats.pinned;
            dict["stride"] = stats.stride;
            dict["thinned"] = stats.thinned;
            dict["refused"] = stats.refused;
            dict["bytes"] = stats.bytes;
            return dict;
        });
}

}  // namespace compass_edge
