#include "runtime/frame_patcher.hpp"

#include <algorithm>
#include <utility>

namespace compass_edge {
namespace {

// The bytes of a slot that its planes lie in.
struct Span {
    std::size_t begin = 0, end = 0;
};

Span span_of(const Geometry& geometry) {
    Span span{SIZE_MAX, 0};
    for (int plane = 0; plane < plane_count(geometry.format); ++plane) {
        const PlaneExtent extent = plane_extent(geometry.format, plane, geometry.width, geometry.height);
        const std::size_t begin = geometry.offset[plane];
        const auto rows = static_cast<std::size_t>(extent.rows - 1);
        const std::size_t last = begin + rows * static_cast<std::size_t>(geometry.stride[plane]) +
                                 static_cast<std::size_t>(extent.row_bytes);
        span = {std::min(span.begin, begin), std::max(span.end, last)};
    }
    return span;
}

}  // namespace

FramePatcher::~FramePatcher() {
    if (!device_) return;
    finish();
    for (const Known& known : keepers_) {
        if (known.pinned) device_->unpin(known.keeper->memory());
    }
}

void FramePatcher::pin(const std::shared_ptr<FrameKeeper>& keeper) {
    for (const Known& known : keepers_) {
        if (known.keeper == keeper) return;
    }
    keepers_.push_back({keeper, false});
    keepers_.back().pinned = device_->pin(keeper->memory());
}

void FramePatcher::enqueue(std::shared_ptr<const FrameRef> frame, void* out, std::size_t out_bytes) {
    let_go();
    pin(frame->keeper());
    Geometry geometry = frame->info().geometry;
    const Span span = span_of(geometry);
    const std::size_t bytes = span.end - span.begin;
    if (geometry.width != width_ || geometry.height != height_ || bytes > room_) {
        finish();              // what is on its way reads the old room
        width_ = height_ = 0;  // if this throws, the next call plans again
        device_->plan(geometry.width, geometry.height, std::max(bytes, room_));
        room_ = std::max(bytes, room_);
        width_ = geometry.width;
        height_ = geometry.height;
        ++stats_.plans;
    }
    for (int plane = 0; plane < plane_count(geometry.format); ++plane) {
        geometry.offset[plane] -= static_cast<std::uint32_t>(span.begin);
    }
    const std::uint8_t* base = frame->base() + span.begin;
    // The lease is kept before anything can read the frame: a throw below must not free the slot under the device.
    held_.push_back({UINT64_MAX, std::move(frame)});
    device_->upload(base, bytes);
    held_.back().ticket = device_->ticket();
    device_->patch(geometry, out, out_bytes);
    ++stats_.frames;
    stats_.bytes += bytes;
}

void FramePatcher::let_go() {
    while (!held_.empty() && held_.front().ticket != UINT64_MAX && device_->passed(held_.front().ticket)) {
        held_.pop_front();
    }
}

void FramePatcher::finish() {
    device_->wait();
    held_.clear();
}

}  // namespace compass_edge
