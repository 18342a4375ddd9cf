// Turns "it did not open" into what a person can act on.
#pragma once

#include "runtime/source.hpp"

namespace compass_edge {

// code: FFmpeg's. Throws Error: usage for what is not a readable video, task for what does not answer.
[[noreturn]] void explain_failed_open(const SourceOptions& options, int code, bool timed_out);

}  // namespace compass_edge
