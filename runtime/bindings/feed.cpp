// Python's Feed: a source decoded by FFmpeg into a ring. Only built where FFmpeg's development packages were found.
#include "runtime/feed.hpp"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "runtime/bindings/image.hpp"

namespace py = pybind11;

namespace compass_edge {

namespace {

const char* state_name(FeedState state) {
    constexpr std::array<const char*, 4> names{"running", "ended", "stalled", "failed"};
    return names[static_cast<std::size_t>(state)];
}

DecodeOn parse_decoder(const std::string& text) {
    return parse_name<DecodeOn>(
        "decoder", text, {{"software", DecodeOn::software}, {"nvdec", DecodeOn::nvdec}, {"jetson", DecodeOn::jetson}});
}

py::dict info_dict(const StreamInfo& info) {
    py::dict dict;
    dict["codec"] = info.codec;
    dict["pixel_format"] = info.pixel_format;
    dict["width"] = info.width;
    dict["height"] = info.height;
    dict["rotation"] = info.rotation;
    dict["frame_rate"] = info.frame_rate;
    dict["duration_s"] = info.duration_s;
    dict["frames"] = info.frames;
    dict["live"] = info.live;
    return dict;
}

py::dict stats_dict(const FeedStats& stats) {
    const DecoderStats& decoder = stats.decoder;
    py::dict dict;
    dict["packets"] = decoder.packets;
    dict["damaged_packets"] = decoder.damaged_packets;
    dict["frames"] = decoder.frames;
    dict["damaged_frames"] = decoder.damaged_frames;
    dict["direct"] = decoder.direct;
    dict["copied"] = decoder.copied;
    dict["converted"] = decoder.converted;
    dict["oversize"] = decoder.oversize;
    dict["stalls"] = stats.stalls;
    dict["reconnects"] = stats.reconnects;
    dict["truncated"] = stats.truncated;
    return dict;
}

}  // namespace

void register_feed(py::module_& m) {
    const FeedOptions defaults;
    const SourceOptions source;
    using NoGil = py::call_guard<py::gil_scoped_release>;
    py::class_<Feed>(m, "Feed", "A file, a stream or a camera, decoded by FFmpeg straight into a ring.")
        .def(py::init([](const std::string& url, double timeout_s, const std::string& format,
                         const std::map<std::string, std::string>& options, int history, int leases, int max_width,
                         int max_height, std::size_t max_bytes, std::uint32_t source_id, int threads, bool realtime,
                         bool reconnect, double max_backoff_s, const std::string& decoder) {
                 const DecodeOn on = parse_decoder(decoder);
                 const py::gil_scoped_release release;
                 return std::make_unique<Feed>(SourceOptions{url, timeout_s, format, options},
                                               FeedOptions{history, leases, max_width, max_height, max_bytes, source_id,
                                                           threads, realtime, reconnect, max_backoff_s, on});
             }),
             py::arg("url"), py::kw_only(), py::arg("timeout_s") = source.timeout_s, py::arg("format") = "",
             py::arg("options") = std::map<std::string, std::string>{}, py::arg("history") = defaults.history,
             py::arg("leases") = defaults.leases, py::arg("max_width") = defaults.max_width,
             py::arg("max_height") = defaults.max_height, py::arg("max_bytes") = defaults.max_bytes,
             py::arg("source_id") = defaults.source_id, py::arg("threads") = defaults.threads,
             py::arg("realtime") = defaults.realtime, py::arg("reconnect") = defaults.reconnect,
             py::arg("max_backoff_s") = defaults.max_backoff_s, py::arg("decoder") = "software")
        .def(
            "step", [](Feed& self) { return state_name(self.step()); }, NoGil())
        .def("seek", &Feed::seek, NoGil(), py::arg("time_s"))
        .def("start", &Feed::start, NoGil())
        .def("stop", &Feed::stop, NoGil())
        .def_property_readonly("ring", [](const Feed& self) { return self.ring(); })
        .def_property_readonly("info", [](const Feed& self) { return info_dict(self.info()); })
        .def_property_readonly("state", [](const Feed& self) { return state_name(self.state()); })
        .def_property_readonly("failure", &Feed::failure)
        .def_property_readonly("stats", [](const Feed& self) { return stats_dict(self.stats()); });
}

}  // namespace compass_edge
