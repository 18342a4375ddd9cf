// FrameRing: fixed slots between one writer of frames and many readers.
//
//   auto ring = FrameRing::open({.frame_bytes = packed_layout(PixelFormat::nv12, 1280, 720).bytes});
//   Writer writer = ring->writer();              // the only one
//   Reader reader = ring->reader(2);             // may hold two frames at a time
//   writer.push(camera_view, {.captured_ns = monotonic_ns()});
//   if (Lookup newest = reader.latest()) use(newest.frame.view());
//
// The writer overwrites the oldest slot nobody holds and never waits. With slots >= history + leases + in_flight there
// always is one, and it is never among the newest `history` frames (iceoryx2's arithmetic). A reader never sees a torn
// frame: it holds a slot by a counted lease, taken by compare-and-swap on the same word the writer must swap to
// overwrite. Payload is never read under a sequence lock, which tears on ARM.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "runtime/frame.hpp"

namespace compass_edge {

struct RingOptions {
    std::size_t frame_bytes = 0;  // of the largest frame, by packed_layout
    int history = 8;              // newest frames that can always be looked up
    int leases = 8;               // frames all readers together may hold
    int in_flight = 1;            // slots the writer may hold: 1 for push, more for a decoder's reference frames
    int slots = 0;                // 0: history + leases + in_flight
};

struct RingStats {
    std::uint64_t written = 0;
    std::uint64_t overwritten = 0;
    std::uint64_t gaps = 0;
    int leases_out = 0;
    std::uint64_t oldest_lease_seq = 0;    // meaningful when leases_out > 0
    std::int64_t oldest_lease_age_ns = 0;  // since that frame went from unleased to leased: finds a leaked view
};

enum class Miss { none, empty, not_yet, overwritten, budget };

// What a look-up found: a frame, or why there is none.
struct Lookup {
    FrameRef frame;
    Miss miss = Miss::none;
    explicit operator bool() const { return static_cast<bool>(frame); }
};

class FrameRing;

// A slot the writer holds: writable until it is published, afterwards kept from reuse until the handle goes.
// May be released on any thread (a decoder lets go of its reference frames when it likes).
class WriteSlot {
  public:
    WriteSlot() = default;
    WriteSlot(WriteSlot&& other) noexcept = default;
    WriteSlot& operator=(WriteSlot&& other) noexcept;
    ~WriteSlot() { reset(); }

    // An unpublished slot becomes free again.
    void reset() noexcept;
    explicit operator bool() const { return ring_ != nullptr; }

    std::uint8_t* data() const;
    std::size_t bytes() const;
    bool published() const;

  private:
    friend class Writer;
    WriteSlot(std::shared_ptr<FrameRing> ring, std::uint32_t slot) : ring_(std::move(ring)), slot_(slot) {}
    std::shared_ptr<FrameRing> ring_;
    std::uint32_t slot_ = 0;
};

// The one writer of a ring. acquire() may be called on any thread; publish(), push() and mark_gap() on one at a time.
class Writer {
  public:
    Writer() = default;
    Writer(Writer&&) noexcept = default;
    Writer& operator=(Writer&& other) noexcept;
    ~Writer() { reset(); }
    void reset() noexcept;
    explicit operator bool() const { return ring_ != nullptr; }

    // Never blocks, no allocation. Empty only when `in_flight` slots are held already.
    WriteSlot acquire();
    // Once a slot; the geometry's planes must lie inside it. Returns the frame's sequence number.
    std::uint64_t publish(WriteSlot& slot, const Geometry& geometry, const Stamp& stamp);
    // Copies the picture into a slot and publishes it. Throws Error (usage) when it does not fit.
    std::uint64_t push(const ImageView& image, const Stamp& stamp);
    // The next frame carries frame_gap_before.
    void mark_gap() { gap_pending_ = true; }

    std::size_t frame_bytes() const;

  private:
    friend class FrameRing;
    explicit Writer(std::shared_ptr<FrameRing> ring) : ring_(std::move(ring)) {}
    std::shared_ptr<FrameRing> ring_;
    bool gap_pending_ = false;
};

// A reader with its own lease budget. Look-ups may run on any thread; none of them blocks or allocates.
class Reader {
  public:
    Reader() = default;
    Reader(Reader&&) noexcept = default;
    Reader& operator=(Reader&& other) noexcept;
    ~Reader() { reset(); }
    // The budget goes back to the ring once the last frame it leased is released.
    void reset() noexcept;
    explicit operator bool() const { return ring_ != nullptr; }

    Lookup latest() const;
    Lookup get(std::uint64_t seq) const;
    // The oldest frame still there among since, since + every, since + 2 * every, ...
    Lookup next(std::uint64_t since, std::uint64_t every = 1) const;

    int leases() const;
    int leases_out() const;

  private:
    friend class FrameRing;
    Reader(std::shared_ptr<FrameRing> ring, std::uint32_t record) : ring_(std::move(ring)), record_(record) {}
    std::shared_ptr<FrameRing> ring_;
    std::uint32_t record_ = 0;
};

class FrameRing final : public FrameKeeper, public std::enable_shared_from_this<FrameRing> {
  public:
    // Allocates and touches all memory. Throws Error (usage) when the options do not add up.
    static std::shared_ptr<FrameRing> open(const RingOptions& options);
    ~FrameRing() override;

    // Throws Error (usage) while another writer lives.
    Writer writer();
    // Throws Error (usage) when fewer than `leases` of the ring's budget are left.
    Reader reader(int leases = 1);

    const RingOptions& options() const { return options_; }
    int leases_left() const;  // of the budget, not yet promised to a reader
    RingStats stats() const;
    std::size_t memory_bytes() const;
    std::span<const std::uint8_t> memory() const override { return {memory_.get(), memory_bytes()}; }

  private:
    friend class WriteSlot;
    friend class Writer;
    friend class Reader;
    struct Header;
    struct Slot;
    struct ReaderRecord;

    explicit FrameRing(const RingOptions& options);
    void release(std::uint32_t slot, std::uint32_t record) noexcept override;
    void drop_reader(std::uint32_t record) noexcept;
    bool spend_lease(std::uint32_t record) noexcept;
    void return_lease(std::uint32_t record) noexcept;
    bool take_lease(std::uint32_t slot, std::uint64_t seq) noexcept;
    Lookup lease(std::uint32_t record, std::uint32_t slot) noexcept;
    Header& header() const;
    Slot& slot(std::uint32_t index) const;
    ReaderRecord& reader_record(std::uint32_t index) const;
    std::uint8_t* payload(std::uint32_t index) const;

    RingOptions options_;
    std::unique_ptr<std::uint8_t, void (*)(void*)> memory_;
    std::mutex readers_;  // opening and closing handles only; never on the way of a frame
};

}  // namespace compass_edge
