// A frame: what a slot says about its pixels, and a counted reference that keeps them alive.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "kernels/image.hpp"

namespace compass_edge {

enum FrameFlag : std::uint32_t {
    frame_gap_before = 1u << 0,  // frames are missing between this one and the one before it
    frame_damaged = 1u << 1,     // decoded from a damaged packet, or predicted from a frame that was
};

// Where the planes lie, as offsets from the start of the slot: the same bytes are valid in another address space.
struct Geometry {
    PixelFormat format = PixelFormat::rgb24;
    ColorMatrix matrix = ColorMatrix::bt601;
    ColorRange range = ColorRange::limited;
    std::int32_t width = 0;
    std::int32_t height = 0;
    std::array<std::uint32_t, 3> offset{};
    std::array<std::int32_t, 3> stride{};
};

constexpr std::int64_t no_pts = INT64_MIN;

// What the frame's source knows about it.
struct Stamp {
    std::int64_t captured_ns = 0;  // monotonic_ns() when the frame was taken from its source
    std::int64_t pts = no_pts;     // in units of time_base seconds
    std::int32_t time_base_num = 1;
    std::int32_t time_base_den = 1'000'000'000;
    std::uint32_t source = 0;
    std::uint32_t flags = 0;  // FrameFlag
};

struct FrameInfo {
    std::uint64_t seq = 0;
    Stamp stamp;
    Geometry geometry;
};

// Rows start at multiples of this many bytes, so that every plane suits the widest SIMD load.
constexpr std::size_t row_alignment = 64;

constexpr std::size_t round_up(std::size_t value, std::size_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

struct Layout {
    Geometry geometry;
    std::size_t bytes = 0;
};

// The planes of a picture one after another, rows aligned. Throws Error (usage) for a size that is not positive.
Layout packed_layout(PixelFormat format, int width, int height, ColorMatrix matrix = ColorMatrix::bt601,
                     ColorRange range = ColorRange::limited);

ImageView view_of(const Geometry& geometry, const std::uint8_t* base);

// Copies the picture's planes to `base` in the given geometry (same format and size).
void copy_planes(const ImageView& from, const Geometry& geometry, std::uint8_t* base);

// Whoever keeps frames alive for their readers: the ring or the store.
class FrameKeeper {
  public:
    virtual ~FrameKeeper() = default;
    // All of its frames lie in here, as long as it lives.
    virtual std::span<const std::uint8_t> memory() const = 0;

  private:
    friend class FrameRef;
    // Any thread; never blocks; no allocation.
    virtual void release(std::uint32_t slot, std::uint32_t holder) noexcept = 0;
};

// A lease on one frame. While it lives the pixels neither move nor change; it keeps its keeper alive too.
// Movable, not copyable; may be released on any thread.
class FrameRef {
  public:
    FrameRef() = default;
    FrameRef(std::shared_ptr<FrameKeeper> keeper, std::uint32_t slot, std::uint32_t holder, const FrameInfo* info,
             const std::uint8_t* base)
        : keeper_(std::move(keeper)), info_(info), base_(base), slot_(slot), holder_(holder) {}
    FrameRef(FrameRef&& other) noexcept = default;
    FrameRef& operator=(FrameRef&& other) noexcept {
        if (this != &other) {
            reset();
            keeper_ = std::move(other.keeper_);
            info_ = other.info_;
            base_ = other.base_;
            slot_ = other.slot_;
            holder_ = other.holder_;
        }
        return *this;
    }
    ~FrameRef() { reset(); }

    void reset() noexcept {
        if (keeper_) keeper_->release(slot_, holder_);
        keeper_.reset();
    }
    explicit operator bool() const { return keeper_ != nullptr; }

    const FrameInfo& info() const { return *info_; }
    const std::uint8_t* base() const { return base_; }
    ImageView view() const { return view_of(info_->geometry, base_); }
    const std::shared_ptr<FrameKeeper>& keeper() const { return keeper_; }

  private:
    std::shared_ptr<FrameKeeper> keeper_;
    const FrameInfo* info_ = nullptr;
    const std::uint8_t* base_ = nullptr;
    std::uint32_t slot_ = 0;
    std::uint32_t holder_ = 0;
};

}  // namespace compass_edge
