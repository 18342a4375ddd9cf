// A 50 Hz control loop that always knows its newest camera frame and that frame's age, and never waits for either.
//
//   cmake --preset release && cmake --build --preset release -t control_loop
//   build/release/examples/control_loop /dev/video0
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "kernels/preprocess.hpp"
#include "runtime/clock.hpp"
#include "runtime/error.hpp"
#include "runtime/feed.hpp"

using namespace compass_edge;

int main(int argc, char** argv) try {
    if (argc != 2) {
        std::fprintf(stderr, "usage: control_loop URL\n");
        return 2;
    }
    Feed camera({.url = argv[1]}, {.realtime = true});
    Reader reader = camera.ring()->reader(1);
    Preprocessor preprocess(PatchSpec{}, Dtype::f16);
    const PatchGrid grid = preprocess.grid(camera.info().width, camera.info().height);
    std::vector<std::uint16_t> patches(static_cast<std::size_t>(grid.rows()) * preprocess.spec().columns());
    camera.start();
    for (int tick = 0; tick < 250 && camera.state() != FeedState::ended; ++tick) {
        if (const Lookup newest = reader.latest()) {
            preprocess.run(newest.frame.view(), patches.data(), patches.size() * sizeof(std::uint16_t));
            const FrameInfo& info = newest.frame.info();
            const double age_ms = static_cast<double>(monotonic_ns() - info.stamp.captured_ns) / 1e6;
            if (tick % 50 == 0)
                std::printf("frame %llu, %.1f ms old\n", static_cast<unsigned long long>(info.seq), age_ms);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return 0;
} catch (const Error& error) {
    std::fprintf(stderr, "control_loop: %s\n", error.what());
    return static_cast<int>(error.fault());
}
