// compass_edge._native: the C++ core as Python sees it.
#include <pybind11/pybind11.h>

#include <stdexcept>

#include "runtime/clock.hpp"
#include "runtime/error.hpp"
#if COMPASS_EDGE_HAS_LIBAV
#include "runtime/av.hpp"
#endif

namespace py = pybind11;

namespace compass_edge {

void register_frame(py::module_& m);
void register_ring(py::module_& m);
void register_store(py::module_& m);
void register_feed(py::module_& m);
void register_preprocess(py::module_& m);
void register_frame_patcher(py::module_& m);

namespace {

// The sentences of the core become the exceptions of compass_edge.errors.
void raise_as(Fault fault, const char* sentence) {
    const char* type = fault == Fault::usage         ? "UsageError"
                       : fault == Fault::environment ? "EnvironmentFault"
                       : fault == Fault::integrity   ? "IntegrityError"
                                                     : "CompassError";
    py::set_error(py::module_::import("compass_edge.errors").attr(type), sentence);
}

}  // namespace

}  // namespace compass_edge

PYBIND11_MODULE(_native, m) {
    using namespace compass_edge;
    m.doc() = "Frames from a source to model-ready patches, in C++.";
    py::register_exception_translator([](std::exception_ptr error) {
        try {
            if (error) std::rethrow_exception(error);
        } catch (const Error& e) {
            raise_as(e.fault(), e.what());
        } catch (const std::invalid_argument& e) {
            raise_as(Fault::usage, e.what());
        }
    });
    register_frame(m);
    register_ring(m);
    register_store(m);
    register_preprocess(m);
    register_frame_patcher(m);
    m.def("monotonic_ns", &monotonic_ns, "The clock of every time stamp.");
#if COMPASS_EDGE_HAS_LIBAV
    register_feed(m);
    m.attr("ffmpeg_version") = av::version();
#else
    m.attr("ffmpeg_version") = py::none();
#endif
}
