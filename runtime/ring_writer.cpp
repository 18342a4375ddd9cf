#include <string>
#include <utility>

#include "runtime/error.hpp"
#include "runtime/ring.hpp"
#include "runtime/ring_layout.hpp"

namespace compass_edge {

WriteSlot& WriteSlot::operator=(WriteSlot&& other) noexcept {
    if (this != &other) {
        reset();
        ring_ = std::move(other.ring_);
        slot_ = other.slot_;
    }
    return *this;
}

void WriteSlot::reset() noexcept {
    if (!ring_) return;
    std::atomic<std::uint64_t>& word = ring_->slot(slot_).word;
    if (SlotWord::state(word.load(std::memory_order_relaxed)) == SlotWord::writing) {
        // Nobody but us touches a slot that is being written. Release pairs with the acquire in Writer::acquire.
        word.store(SlotWord::make(SlotWord::free, false, 0), std::memory_order_release);
    } else {
        word.fetch_and(~SlotWord::held_bit, std::memory_order_release);
    }
    ring_->header().in_flight.fetch_sub(1, std::memory_order_release);
    ring_.reset();
}

std::uint8_t* WriteSlot::data() const { return ring_->payload(slot_); }

bool WriteSlot::published() const {
    return SlotWord::state(ring_->slot(slot_).word.load(std::memory_order_relaxed)) == SlotWord::ready;
}

std::size_t WriteSlot::bytes() const { return ring_->header().payload_stride; }

Writer& Writer::operator=(Writer&& other) noexcept {
    if (this != &other) {
        reset();
        ring_ = std::move(other.ring_);
        gap_pending_ = other.gap_pending_;
    }
    return *this;
}

void Writer::reset() noexcept {
    if (ring_) ring_->header().writer_taken.store(0, std::memory_order_release);
    ring_.reset();
}

std::size_t Writer::frame_bytes() const { return ring_->header().payload_stride; }

WriteSlot Writer::acquire() {
    FrameRing::Header& h = ring_->header();
    // Acquire pairs with the release in WriteSlot::reset: a count that went down means a slot that can be had.
    if (h.in_flight.fetch_add(1, std::memory_order_acq_rel) >= static_cast<std::uint32_t>(ring_->options().in_flight)) {
        h.in_flight.fetch_sub(1, std::memory_order_release);
        return {};
    }
    for (;;) {
        // At least history + 1 slots are reusable here; a failed swap means a reader just leased that very one.
        std::uint32_t best = h.slots;
        std::uint64_t best_word = 0;
        for (std::uint32_t i = 0; i < h.slots; ++i) {
            const std::uint64_t word = ring_->slot(i).word.load(std::memory_order_relaxed);
            if (!SlotWord::reusable(word)) continue;
            if (SlotWord::state(word) == SlotWord::free) {
                best = i;
                best_word = word;
                break;
            }
            if (best == h.slots || SlotWord::seq(word) < SlotWord::seq(best_word)) {
                best = i;
                best_word = word;
            }
        }
        if (best == h.slots) continue;
        FrameRing::Slot& slot = ring_->slot(best);
        // Acquire pairs with the release in FrameRing::release: the last reader is done with the bytes.
        if (slot.word.compare_exchange_strong(best_word, SlotWord::make(SlotWord::writing, true, 0),
                                              std::memory_order_acquire, std::memory_order_relaxed)) {
            if (SlotWord::state(best_word) == SlotWord::ready) h.overwritten.fetch_add(1, std::memory_order_relaxed);
            return WriteSlot(ring_, best);
        }
    }
}

std::uint64_t Writer::publish(WriteSlot& write, const Geometry& geometry, const Stamp& stamp) {
    // Readers may hold a published slot: its word is not the writer's to replace.
    if (write.ring_ != ring_ || write.published()) {
        throw Error(Fault::usage, "A slot is published once, by the writer it came from. Acquire another one.");
    }
    FrameRing::Header& h = ring_->header();
    FrameRing::Slot& slot = ring_->slot(write.slot_);
    const std::uint64_t seq = h.written.load(std::memory_order_relaxed);
    slot.info.seq = seq;
    slot.info.geometry = geometry;
    slot.info.stamp = stamp;
    if (std::exchange(gap_pending_, false)) slot.info.stamp.flags |= frame_gap_before;
    if ((slot.info.stamp.flags & frame_gap_before) != 0) h.gaps.fetch_add(1, std::memory_order_relaxed);
    // Release pairs with the acquire in FrameRing::take_lease: who leases this word sees the frame whole.
    slot.word.store(SlotWord::make(SlotWord::ready, true, seq), std::memory_order_release);
    h.written.store(seq + 1, std::memory_order_relaxed);
    // Release pairs with the acquire loads in Reader::latest and Reader::get.
    h.latest.store(((seq + 1) << FrameRing::Header::latest_shift) | write.slot_, std::memory_order_release);
    return seq;
}

std::uint64_t Writer::push(const ImageView& image, const Stamp& stamp) {
    const Layout layout = packed_layout(image.format, image.width, image.height, image.matrix, image.range);
    if (layout.bytes > frame_bytes()) {
        throw Error(Fault::usage, "This ring was planned for frames of " + std::to_string(frame_bytes()) +
                                      " bytes, and a " + std::to_string(image.width) + "x" +
                                      std::to_string(image.height) + " " + std::string(name(image.format)) +
                                      " frame needs " + std::to_string(layout.bytes) +
                                      ". Open the ring with the largest frame that will come.");
    }
    WriteSlot slot = acquire();
    if (!slot) {
        throw Error(Fault::usage, "The writer holds its " + std::to_string(ring_->options().in_flight) +
                                      " slots already. Release one, or open the ring with a larger in_flight.");
    }
    copy_planes(image, layout.geometry, slot.data());
    return publish(slot, layout.geometry, stamp);
}

}  // namespace compass_edge
