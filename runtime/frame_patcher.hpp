// FramePatcher: from a ring slot to patches in a device's memory. The planes go up as they were decoded: there is no
// RGB picture on the host, and no second copy of the frame.
//
//   FramePatcher patcher(open_cuda_device(spec, Dtype::f16, stream));
//   patcher.enqueue(frame, device_patches, bytes);       // returns at once; the engine follows on the same stream
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "runtime/patch_device.hpp"

namespace compass_edge {

struct FramePatcherStats {
    std::uint64_t frames = 0;
    std::uint64_t bytes = 0;  // that went up
    std::uint64_t plans = 0;  // sizes of pictures that room was made for
};

// One thread at a time.
class FramePatcher {
  public:
    explicit FramePatcher(std::unique_ptr<PatchDevice> device) : device_(std::move(device)) {}
    // Waits: the device may still be reading frames.
    ~FramePatcher();
    FramePatcher(FramePatcher&&) noexcept = default;
    FramePatcher& operator=(FramePatcher&&) = delete;

    PatchGrid grid(int width, int height) const { return device_->grid(width, height); }

    // out [device, dtype] [grid.rows(), spec.columns()]
    // Keeps the lease until the device has read the frame. Allocates only for another size of picture, and for the
    // first frame of a ring or store, whose memory is pinned and kept alive by this object. Throws
    // std::invalid_argument, before the kernels are enqueued, for a buffer that is too small.
    void enqueue(std::shared_ptr<const FrameRef> frame, void* out, std::size_t out_bytes);

    // Waits, and gives all leases back.
    void finish();
    std::size_t held() const { return held_.size(); }
    const FramePatcherStats& stats() const { return stats_; }

  private:
    struct Held {
        std::uint64_t ticket;
        std::shared_ptr<const FrameRef> frame;
    };
    void let_go();
    void pin(const std::shared_ptr<FrameKeeper>& keeper);

    std::unique_ptr<PatchDevice> device_;
    std::deque<Held> held_;  // oldest first
    struct Known {
        std::shared_ptr<FrameKeeper> keeper;
        bool pinned;
    };
    std::vector<Known> keepers_;  // a ring and a store, most often
    int width_ = 0, height_ = 0;
    std::size_t room_ = 0;
    FramePatcherStats stats_;
};

}  // namespace compass_edge
