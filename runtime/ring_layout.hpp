// The ring's memory: a header, reader records, slot headers, payloads. Offsets only, no pointer, no process-local
// state, so that the same block can live in shared memory.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/frame.hpp"
#include "runtime/ring.hpp"

namespace compass_edge {

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

constexpr std::uint32_t max_readers = 64;
constexpr std::uint32_t max_slots = 1u << 12;
constexpr int max_leases = (1 << 15) - 1;

// A slot's whole state in one word, so that one compare-and-swap decides between a reader and the writer:
//   bits 0..15 leases | 16..17 state | 18 held by the writer | 19..63 sequence number
// The sequence number makes the word unique per use: a stale word never matches a recycled slot.
struct SlotWord {
    enum State : std::uint64_t { free = 0, writing = 1, ready = 2 };
    static constexpr std::uint64_t one_lease = 1;
    static constexpr std::uint64_t lease_mask = 0xffff;
    static constexpr std::uint64_t held_bit = 1ull << 18;
    static constexpr int state_shift = 16;
    static constexpr int seq_shift = 19;

    static constexpr std::uint64_t make(State state, bool held, std::uint64_t seq) {
        return (seq << seq_shift) | (held ? held_bit : 0) | (static_cast<std::uint64_t>(state) << state_shift);
    }
    static constexpr State state(std::uint64_t word) { return static_cast<State>((word >> state_shift) & 3); }
    static constexpr std::uint64_t leases(std::uint64_t word) { return word & lease_mask; }
    static constexpr bool held(std::uint64_t word) { return (word & held_bit) != 0; }
    static constexpr std::uint64_t seq(std::uint64_t word) { return word >> seq_shift; }
    static constexpr bool reusable(std::uint64_t word) {
        return !held(word) && leases(word) == 0 && state(word) != writing;
    }
};

// A reader's budget in one word: bits 0..14 leases out | 15..29 budget | 30 taken | 31 closed (handle gone, leases
// out).
struct ReaderWord {
    static constexpr std::uint32_t one_lease = 1;
    static constexpr std::uint32_t count_mask = 0x7fff;
    static constexpr int budget_shift = 15;
    static constexpr std::uint32_t taken_bit = 1u << 30;
    static constexpr std::uint32_t closed_bit = 1u << 31;

    static constexpr std::uint32_t out(std::uint32_t word) { return word & count_mask; }
    static constexpr std::uint32_t budget(std::uint32_t word) { return (word >> budget_shift) & count_mask; }
    static constexpr std::uint32_t open(int budget) {
        return taken_bit | (static_cast<std::uint32_t>(budget) << budget_shift);
    }
};

struct alignas(64) FrameRing::Slot {
    std::atomic<std::uint64_t> word;
    std::atomic<std::int64_t> leased_ns;  // when the frame last went from unleased to leased; a hint for statistics
    FrameInfo info;                       // written while `writing`, read while leased
};

struct alignas(64) FrameRing::ReaderRecord {
    std::atomic<std::uint32_t> word;
};

struct alignas(64) FrameRing::Header {
    static constexpr std::uint64_t expected_magic = 0x31474e4952454345;  // "ECERING1"
    std::uint64_t magic;
    std::uint64_t bytes;
    std::uint64_t readers_offset;
    std::uint64_t slots_offset;
    std::uint64_t payload_offset;
    std::uint64_t payload_stride;
    std::uint32_t slots;
    // Own cache line: every reader polls it.
    alignas(64) std::atomic<std::uint64_t> latest;  // (sequence number + 1) << 12 | slot; 0 before the first frame
    // Own cache line: only the writer's side writes these.
    alignas(64) std::atomic<std::uint64_t> written;
    std::atomic<std::uint64_t> overwritten;
    std::atomic<std::uint64_t> gaps;
    std::atomic<std::uint32_t> in_flight;
    std::atomic<std::uint32_t> writer_taken;

    static constexpr int latest_shift = 12;
};
static_assert(max_slots <= (1u << 12));

}  // namespace compass_edge
