#include "runtime/ring.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "runtime/clock.hpp"
#include "runtime/error.hpp"
#include "runtime/ring_layout.hpp"

namespace compass_edge {

namespace {

[[noreturn]] void refuse(const std::string& sentence) { throw Error(Fault::usage, sentence); }

RingOptions checked(RingOptions options) {
    if (options.frame_bytes == 0)
        refuse("A ring is planned from its largest frame: frame_bytes must be above 0, got 0.");
    if (options.history < 1 || options.leases < 1 || options.in_flight < 1) {
        refuse("A ring needs history, leases and in_flight of at least 1, got history " +
               std::to_string(options.history) + ", leases " + std::to_string(options.leases) + ", in_flight " +
               std::to_string(options.in_flight) + ".");
    }
    if (options.leases > max_leases) {
        refuse("A ring's lease budget is at most " + std::to_string(max_leases) + ", got " +
               std::to_string(options.leases) + ".");
    }
    const long needed = long{options.history} + options.leases + options.in_flight;
    if (needed > max_slots || options.slots > static_cast<int>(max_slots)) {
        refuse("A ring has at most " + std::to_string(max_slots) + " slots, and this one needs " +
               std::to_string(std::max<long>(needed, options.slots)) + ". Keep older frames in a FrameStore.");
    }
    if (options.slots == 0) options.slots = static_cast<int>(needed);
    if (options.slots < needed) {
        refuse("A ring that never makes its writer wait needs slots >= history + leases + in_flight = " +
               std::to_string(needed) + ", got " + std::to_string(options.slots) +
               ". Give it more slots or ask for less history or fewer leases.");
    }
    return options;
}

}  // namespace

std::shared_ptr<FrameRing> FrameRing::open(const RingOptions& options) {
    return std::shared_ptr<FrameRing>(new FrameRing(checked(options)));
}

FrameRing::FrameRing(const RingOptions& options) : options_(options), memory_(nullptr, std::free) {
    const std::size_t slots = static_cast<std::size_t>(options.slots);
    const std::size_t readers_offset = round_up(sizeof(Header), 64);
    const std::size_t slots_offset = readers_offset + sizeof(ReaderRecord) * max_readers;
    const std::size_t payload_offset = round_up(slots_offset + sizeof(Slot) * slots, 4096);
    const std::size_t payload_stride = round_up(options.frame_bytes, 4096);
    const std::size_t bytes = payload_offset + payload_stride * slots;
    memory_.reset(static_cast<std::uint8_t*>(std::aligned_alloc(4096, bytes)));
    if (!memory_) {
        throw Error(Fault::environment, "A ring of " + std::to_string(bytes >> 20) + " MiB (" + std::to_string(slots) +
                                            " slots) does not fit in memory. Ask for fewer slots or smaller frames.");
    }
    std::memset(memory_.get(), 0, bytes);  // touch every page now: the first frames must not pay for it
    Header* h = new (memory_.get()) Header{};
    h->magic = Header::expected_magic;
    h->bytes = bytes;
    h->readers_offset = readers_offset;
    h->slots_offset = slots_offset;
    h->payload_offset = payload_offset;
    h->payload_stride = payload_stride;
    h->slots = static_cast<std::uint32_t>(slots);
    for (std::uint32_t i = 0; i < max_readers; ++i) new (&reader_record(i)) ReaderRecord{};
    for (std::uint32_t i = 0; i < h->slots; ++i) new (&slot(i)) Slot{};
}

FrameRing::~FrameRing() = default;

FrameRing::Header& FrameRing::header() const { return *reinterpret_cast<Header*>(memory_.get()); }

FrameRing::Slot& FrameRing::slot(std::uint32_t index) const {
    return reinterpret_cast<Slot*>(memory_.get() + header().slots_offset)[index];
}

FrameRing::ReaderRecord& FrameRing::reader_record(std::uint32_t index) const {
    return reinterpret_cast<ReaderRecord*>(memory_.get() + header().readers_offset)[index];
}

std::uint8_t* FrameRing::payload(std::uint32_t index) const {
    return memory_.get() + header().payload_offset + header().payload_stride * index;
}

std::size_t FrameRing::memory_bytes() const { return header().bytes; }

Writer FrameRing::writer() {
    // Pairs with the release in Writer::reset: a new writer sees all that the old one wrote.
    if (header().writer_taken.exchange(1, std::memory_order_acquire) != 0) {
        refuse("This ring already has its writer, and a ring has one. Drop that handle first, or open a second ring.");
    }
    return Writer(shared_from_this());
}

Reader FrameRing::reader(int leases) {
    if (leases < 1) refuse("A reader needs at least one lease, got " + std::to_string(leases) + ".");
    const std::lock_guard lock(readers_);
    std::uint32_t vacant = 0;
    // Acquire pairs with the release in return_lease and drop_reader.
    while (vacant < max_readers && reader_record(vacant).word.load(std::memory_order_acquire) != 0) ++vacant;
    if (vacant == max_readers) refuse("This ring has " + std::to_string(max_readers) + " readers, its most.");
    const int left = leases_left();
    if (leases > left) {
        refuse("This ring was opened with " + std::to_string(options_.leases) + " leases, " +
               std::to_string(options_.leases - left) + " of them belong to other readers, and a reader asked for " +
               std::to_string(leases) + ". Open the ring with more leases, or drop a reader and the frames it holds.");
    }
    reader_record(vacant).word.store(ReaderWord::open(leases), std::memory_order_release);
    return Reader(shared_from_this(), vacant);
}

int FrameRing::leases_left() const {
    int left = options_.leases;
    for (std::uint32_t i = 0; i < max_readers; ++i) {
        left -= static_cast<int>(ReaderWord::budget(reader_record(i).word.load(std::memory_order_relaxed)));
    }
    return left;
}

void FrameRing::drop_reader(std::uint32_t record) noexcept {
    std::atomic<std::uint32_t>& word = reader_record(record).word;
    const std::uint32_t before = word.fetch_or(ReaderWord::closed_bit, std::memory_order_acq_rel);
    if (ReaderWord::out(before) == 0) word.store(0, std::memory_order_release);
}

// The reader's own count is taken before the slot's and given back after it: a slot is never leased beyond the budget.
bool FrameRing::spend_lease(std::uint32_t record) noexcept {
    std::atomic<std::uint32_t>& word = reader_record(record).word;
    std::uint32_t seen = word.load(std::memory_order_relaxed);
    do {
        if (ReaderWord::out(seen) >= ReaderWord::budget(seen)) return false;
    } while (!word.compare_exchange_weak(seen, seen + ReaderWord::one_lease, std::memory_order_acq_rel,
                                         std::memory_order_relaxed));
    return true;
}

void FrameRing::return_lease(std::uint32_t record) noexcept {
    std::atomic<std::uint32_t>& word = reader_record(record).word;
    const std::uint32_t before = word.fetch_sub(ReaderWord::one_lease, std::memory_order_acq_rel);
    // The handle is gone and this was its last frame: nobody else touches the record any more.
    if ((before & ReaderWord::closed_bit) != 0 && ReaderWord::out(before) == 1) {
        word.store(0, std::memory_order_release);
    }
}

bool FrameRing::take_lease(std::uint32_t index, std::uint64_t seq) noexcept {
    Slot& s = slot(index);
    std::uint64_t word = s.word.load(std::memory_order_relaxed);
    while (SlotWord::state(word) == SlotWord::ready && SlotWord::seq(word) == seq) {
        // Acquire pairs with the release store in Writer::publish: the frame's bytes are there.
        if (s.word.compare_exchange_weak(word, word + SlotWord::one_lease, std::memory_order_acquire,
                                         std::memory_order_relaxed)) {
            if (SlotWord::leases(word) == 0) s.leased_ns.store(monotonic_ns(), std::memory_order_relaxed);
            return true;
        }
    }
    return false;
}

Lookup FrameRing::lease(std::uint32_t record, std::uint32_t index) noexcept {
    return {FrameRef(shared_from_this(), index, record, &slot(index).info, payload(index)), Miss::none};
}

void FrameRing::release(std::uint32_t index, std::uint32_t record) noexcept {
    // Release pairs with the acquire in Writer::acquire: our reads end before the slot is overwritten.
    slot(index).word.fetch_sub(SlotWord::one_lease, std::memory_order_release);
    return_lease(record);
}

RingStats FrameRing::stats() const {
    const Header& h = header();
    RingStats stats;
    stats.written = h.written.load(std::memory_order_relaxed);
    stats.overwritten = h.overwritten.load(std::memory_order_relaxed);
    stats.gaps = h.gaps.load(std::memory_order_relaxed);
    std::int64_t oldest = INT64_MAX;
    for (std::uint32_t i = 0; i < h.slots; ++i) {
        const std::uint64_t word = slot(i).word.load(std::memory_order_relaxed);
        if (SlotWord::leases(word) == 0) continue;
        stats.leases_out += static_cast<int>(SlotWord::leases(word));
        const std::int64_t since = slot(i).leased_ns.load(std::memory_order_relaxed);
        if (since < oldest) {
            oldest = since;
            stats.oldest_lease_seq = SlotWord::seq(word);
        }
    }
    if (stats.leases_out > 0) stats.oldest_lease_age_ns = monotonic_ns() - oldest;
    return stats;
}

}  // namespace compass_edge
