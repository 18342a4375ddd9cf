// Python's FrameRing, Writer and Reader.
#include "runtime/ring.hpp"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <variant>

#include "runtime/bindings/frame.hpp"
#include "runtime/bindings/image.hpp"
#include "runtime/clock.hpp"
#include "runtime/error.hpp"

namespace py = pybind11;

namespace compass_edge {

namespace {

using Picture = std::variant<py::array, std::vector<py::array>>;

// In Python a handle can be closed and still be at hand.
template <class Handle>
Handle& open_one(Handle& handle) {
    if (!handle) throw Error(Fault::usage, "This handle was closed: take another one from the ring.");
    return handle;
}

std::optional<PyFrame> found(const Reader& reader, Lookup lookup) {
    if (lookup.miss == Miss::budget) {
        throw Error(Fault::usage,
                    "This reader may hold " + std::to_string(reader.leases()) +
                        " frames and holds them all. Drop a frame and every array made from it, copy what "
                        "you want to keep, or open the reader with more leases.");
    }
    if (!lookup) return std::nullopt;
    return PyFrame(std::move(lookup.frame));
}

std::uint64_t push(Writer& self, const Picture& picture, const std::optional<std::string>& format,
                   const std::optional<int>& width, const std::optional<int>& height, const std::string& matrix,
                   const std::string& range, const std::optional<std::int64_t>& captured_ns,
                   const std::optional<std::int64_t>& pts, std::pair<int, int> time_base, std::uint32_t source,
                   bool gap_before, bool damaged) {
    Stamp stamp;
    stamp.captured_ns = captured_ns.value_or(monotonic_ns());
    stamp.pts = pts.value_or(no_pts);
    stamp.time_base_num = time_base.first;
    stamp.time_base_den = time_base.second;
    stamp.source = source;
    stamp.flags = (gap_before ? frame_gap_before : 0u) | (damaged ? frame_damaged : 0u);
    ImageView view;
    if (const auto* array = std::get_if<py::array>(&picture); array != nullptr && !format) {
        view = array_view(*array);
    } else {
        if (!format || !width || !height) {
            throw Error(Fault::usage,
                        "Planes come with their format, width and height; an RGB or gray array alone does "
                        "not need them.");
        }
        const std::vector<py::array> one = array != nullptr ? std::vector{*array} : std::vector<py::array>{};
        view = plane_view(array != nullptr ? one : std::get<std::vector<py::array>>(picture), *format, *width, *height,
                          matrix, range);
    }
    // Under the GIL: a ring has one writer, and Python's threads take turns at it here.
    return open_one(self).push(view, stamp);
}

py::dict stats_dict(const RingStats& stats) {
    py::dict dict;
    dict["written"] = stats.written;
    dict["overwritten"] = stats.overwritten;
    dict["gaps"] = stats.gaps;
    dict["leases_out"] = stats.leases_out;
    dict["oldest_lease_seq"] = stats.leases_out > 0 ? py::cast(stats.oldest_lease_seq) : py::none();
    dict["oldest_lease_age_s"] =
        stats.leases_out > 0 ? py::cast(static_cast<double>(stats.oldest_lease_age_ns) / 1e9) : py::none();
    return dict;
}

}  // namespace

void register_ring(py::module_& m) {
    py::class_<Writer>(m, "Writer", "The one writer of a ring. It never waits.")
        .def("push", &push, py::arg("picture"), py::kw_only(), py::arg("format") = py::none(),
             py::arg("width") = py::none(), py::arg("height") = py::none(), py::arg("matrix") = "bt601",
             py::arg("range") = "limited", py::arg("captured_ns") = py::none(), py::arg("pts") = py::none(),
             py::arg("time_base") = std::pair(1, 1'000'000'000), py::arg("source") = 0, py::arg("gap_before") = false,
             py::arg("damaged") = false,
             "Copies a picture into the ring and returns its sequence number. The picture is a uint8 (H, W, 3) or (H, "
             "W) "
             "array, or a list of planes with their format, width and height.")
        .def("mark_gap", &Writer::mark_gap, "The next frame is flagged: frames are missing before it.")
        .def("close", &Writer::reset);

    py::class_<Reader>(m, "Reader", "A reader with its own lease budget. Look-ups neither wait nor allocate slots.")
        .def(
            "latest", [](const Reader& self) { return found(self, open_one(self).latest()); },
            "The newest frame, or None.")
        .def(
            "get", [](const Reader& self, std::uint64_t seq) { return found(self, open_one(self).get(seq)); },
            py::arg("seq"), "The frame of that number; None when it is overwritten or not there yet.")
        .def(
            "next",
            [](const Reader& self, std::uint64_t since, std::uint64_t every) {
                return found(self, open_one(self).next(since, every));
            },
            py::arg("since"), py::arg("every") = 1,
            "The oldest frame still there among since, since + every, since + 2 * every, ...; or None.")
        .def_property_readonly("leases", [](const Reader& self) { return open_one(self).leases(); })
        .def_property_readonly("leases_out", [](const Reader& self) { return open_one(self).leases_out(); })
        .def("close", &Reader::reset);

    py::class_<FrameRing, std::shared_ptr<FrameRing>>(m, "FrameRing",
                                                      "Fixed slots between one writer of frames and many readers.")
        .def(py::init([](std::size_t frame_bytes, int history, int leases, int in_flight, int slots) {
                 return FrameRing::open({frame_bytes, history, leases, in_flight, slots});
             }),
             py::arg("frame_bytes"), py::kw_only(), py::arg("history") = 8, py::arg("leases") = 8,
             py::arg("in_flight") = 1, py::arg("slots") = 0)
        .def("writer", &FrameRing::writer)
        .def("reader", &FrameRing::reader, py::arg("leases") = 1)
        .def_property_readonly("stats", [](const FrameRing& self) { return stats_dict(self.stats()); })
        .def_property_readonly("slots", [](const FrameRing& self) { return self.options().slots; })
        .def_property_readonly("history", [](const FrameRing& self) { return self.options().history; })
        .def_property_readonly("leases", [](const FrameRing& self) { return self.options().leases; })
        .def_property_readonly("leases_left", &FrameRing::leases_left)
        .def_property_readonly("frame_bytes", [](const FrameRing& self) { return self.options().frame_bytes; })
        .def_property_readonly("memory_bytes", &FrameRing::memory_bytes);

    m.def(
        "frame_bytes",
        [](const std::string& format, int width, int height) {
            return packed_layout(parse_format(format), width, height).bytes;
        },
        py::arg("format"), py::arg("width"), py::arg("height"), "Bytes a frame takes in a ring slot.");
}

}  // namespace compass_edge
