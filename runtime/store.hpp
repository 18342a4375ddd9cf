// FrameStore: the few frames the loop needs for longer than the ring keeps them.
//
//   auto store = FrameStore::open({.frame_bytes = ring->options().frame_bytes});
//   store->offer(frame);          // keeps every 10th frame of the episode
//   store->pin(frame);            // the start of a step: kept until unpinned
//
// When an episode outgrows max_frames the store thins itself: the stride doubles and every other frame goes, so that
// what is left still covers the episode evenly. All memory is planned at open.
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
    std::uint64_t every = 10;              // the paper samples every 10th frame
    int max_frames = 128;                  // sampled frames an episode
    int max_pins = 8;                      // frames kept by name beside the sampled ones
    std::size_t max_bytes = 512ull << 20;  // caps max_frames; the store says what it could plan
};

struct StoreStats {
    int kept = 0;
    int pinned = 0;
    std::uint64_t stride = 0;   // grows by doubling as the episode gets longer
    std::uint64_t thinned = 0;  // frames dropped again to make room
    std::uint64_t refused = 0;  // offers that found every buffer in use by a reader
    std::size_t bytes = 0;      // planned at open, never exceeded
};

// Any thread: a mutex guards the index, which is touched once every few frames. Releasing a frame takes no lock.
class FrameStore final : public FrameKeeper, public std::enable_shared_from_this<FrameStore> {
  public:
    // Throws Error (usage) when max_bytes does not hold at least two sampled frames beside the pins.
    static std::shared_ptr<FrameStore> open(const StoreOptions& options);

    // Starts an episode: drops everything; the stride counts from this sequence number.
    void begin(std::uint64_t first_seq);
    // Keeps a copy when the frame's turn has come. Frames must be offered in order; a repeated one is ignored.
    bool offer(const FrameRef& frame);
    // Keeps a copy whatever its turn. Throws Error (usage) when max_pins are pinned already.
    void pin(const FrameRef& frame);
    void unpin(std::uint64_t seq);

    // Empty when the store does not have it.
    FrameRef get(std::uint64_t seq);
    std::vector<std::uint64_t> sequence_numbers() const;

    const StoreOptions& options() const { return options_; }  // max_frames as planned
    StoreStats stats() const;

  private:
    struct Buffer {
        FrameInfo info;
        std::atomic<int> references{0};  // readers; plus one while indexed
        bool sampled = false;
        bool pinned = false;
    };

    explicit FrameStore(const StoreOptions& options);
    void release(std::uint32_t buffer, std::uint32_t) noexcept override;
    Buffer* find(std::uint64_t seq);
    Buffer* copy_in(const FrameRef& frame);
    void drop_unless_wanted(Buffer& buffer);
    void thin();
    std::uint8_t* payload(const Buffer& buffer) const;

    StoreOptions options_;
    std::size_t stride_bytes_ = 0;
    std::unique_ptr<std::uint8_t, void (*)(void*)> memory_;
    std::vector<Buffer> buffers_;
    mutable std::mutex mutex_;
    std::uint64_t first_seq_ = 0;
    std::uint64_t next_seq_ = 0;
    StoreStats stats_;
};

}  // namespace compass_edge
