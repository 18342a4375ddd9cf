// FrameStore: the few frames the loop needs for longer than the ring keeps them, by their numbers.
//
//   auto store = FrameStore::open({.frame_bytes = ring->options().frame_bytes, .max_frames = 128});
//   store->keep(frame);                       // a copy: the ring gets its slot back
//   FrameRef start = store->get(seq);
//   store->drop(seq);                         // `start` stays readable until it goes
//
// All memory is planned at open. Which frames are worth keeping is the caller's to decide.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/frame.hpp"

namespace compass_edge {

struct StoreOptions {
    std::size_t frame_bytes = 0;           // of the largest frame, by packed_layout
    int max_frames = 128;                  // kept ones, and dropped ones that a reader still holds
    std::size_t max_bytes = 512ull << 20;  // caps max_frames; the store says what it could plan
};

struct StoreStats {
    int kept = 0;
    std::uint64_t refused = 0;  // frames that found every buffer in use
    std::size_t bytes = 0;      // planned at open, never exceeded
};

// Any thread: a mutex guards the index and is held while a frame is copied in. Releasing a frame takes no lock. Only
// sequence_numbers() allocates.
class FrameStore final : public FrameKeeper, public std::enable_shared_from_this<FrameStore> {
  public:
    // Allocates everything. Throws Error (usage) when max_bytes does not hold a single frame.
    static std::shared_ptr<FrameStore> open(const StoreOptions& options);

    // Copies the frame in under its sequence number; one that is there already is left as it is. False, and counted,
    // when every buffer is kept or held. Throws Error (usage) for a frame larger than the store was planned for.
    bool keep(const FrameRef& frame);
    // Its buffer is free once the last reader lets go of it. Harmless when the store does not have it.
    void drop(std::uint64_t seq);
    // Drops every frame.
    void clear();

    // Empty when the store does not have it.
    FrameRef get(std::uint64_t seq);
    // Rising.
    std::vector<std::uint64_t> sequence_numbers() const;

    const StoreOptions& options() const { return options_; }  // max_frames as planned
    StoreStats stats() const;
    std::span<const std::uint8_t> memory() const override { return {memory_.get(), stats_.bytes}; }

  private:
    struct Buffer {
        FrameInfo info;
        std::atomic<int> references{0};  // readers; plus one while kept
        bool kept = false;
    };

    explicit FrameStore(const StoreOptions& options);
    void release(std::uint32_t buffer, std::uint32_t) noexcept override;
    Buffer* find(std::uint64_t seq);
    void drop(Buffer& buffer);
    std::uint8_t* payload(const Buffer& buffer) const;

    StoreOptions options_;
    std::size_t stride_bytes_ = 0;
    std::unique_ptr<std::uint8_t, void (*)(void*)> memory_;
    std::vector<Buffer> buffers_;
    mutable std::mutex mutex_;
    StoreStats stats_;
};

}  // namespace compass_edge
