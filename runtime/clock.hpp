// One clock for every time stamp: CLOCK_MONOTONIC, the clock V4L2 stamps its buffers with.
#pragma once

#include <chrono>
#include <cstdint>

namespace compass_edge {

// Any thread; no allocation; no system call where the kernel maps the clock into the process.
inline std::int64_t monotonic_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

}  // namespace compass_edge
