// A frame in Python's hands: the lease lives as long as any object that shows its pixels.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>

#include "runtime/frame.hpp"

namespace compass_edge {

class PyFrame {
  public:
    explicit PyFrame(FrameRef frame) : frame_(std::make_shared<FrameRef>(std::move(frame))) {}

    // Throws Error (usage) after release().
    const FrameRef& frame() const;
    const std::shared_ptr<FrameRef>& share() const { return frame_; }
    void release() { frame_.reset(); }

  private:
    std::shared_ptr<FrameRef> frame_;
};

}  // namespace compass_edge
