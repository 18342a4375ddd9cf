#include <algorithm>
#include <utility>

#include "runtime/ring.hpp"
#include "runtime/ring_layout.hpp"

namespace compass_edge {

Reader& Reader::operator=(Reader&& other) noexcept {
    if (this != &other) {
        reset();
        ring_ = std::move(other.ring_);
        record_ = other.record_;
    }
    return *this;
}

void Reader::reset() noexcept {
    if (ring_) ring_->drop_reader(record_);
    ring_.reset();
}

int Reader::leases() const {
    return static_cast<int>(ReaderWord::budget(ring_->reader_record(record_).word.load(std::memory_order_relaxed)));
}

int Reader::leases_out() const {
    return static_cast<int>(ReaderWord::out(ring_->reader_record(record_).word.load(std::memory_order_relaxed)));
}

Lookup Reader::latest() const {
    constexpr std::uint64_t slot_mask = (1u << FrameRing::Header::latest_shift) - 1;
    if (!ring_->spend_lease(record_)) return {{}, Miss::budget};
    for (;;) {
        // Acquire pairs with the release store in Writer::publish.
        const std::uint64_t latest = ring_->header().latest.load(std::memory_order_acquire);
        if (latest == 0) {
            ring_->return_lease(record_);
            return {{}, Miss::empty};
        }
        const auto slot = static_cast<std::uint32_t>(latest & slot_mask);
        // A miss means that `history` newer frames were published since the load: look again.
        if (ring_->take_lease(slot, (latest >> FrameRing::Header::latest_shift) - 1))
            return ring_->lease(record_, slot);
    }
}

Lookup Reader::get(std::uint64_t seq) const {
    // Acquire pairs with the release store in Writer::publish.
    const std::uint64_t latest = ring_->header().latest.load(std::memory_order_acquire);
    if (latest == 0) return {{}, Miss::empty};
    if (seq >= latest >> FrameRing::Header::latest_shift) return {{}, Miss::not_yet};
    if (!ring_->spend_lease(record_)) return {{}, Miss::budget};
    for (std::uint32_t i = 0; i < ring_->header().slots; ++i) {
        if (ring_->take_lease(i, seq)) return ring_->lease(record_, i);
    }
    ring_->return_lease(record_);
    return {{}, Miss::overwritten};
}

Lookup Reader::next(std::uint64_t since, std::uint64_t every) const {
    every = std::max<std::uint64_t>(every, 1);
    // Acquire pairs with the release store in Writer::publish.
    const std::uint64_t latest = ring_->header().latest.load(std::memory_order_acquire);
    if (latest == 0) return {{}, Miss::empty};
    if (since >= latest >> FrameRing::Header::latest_shift) return {{}, Miss::not_yet};
    if (!ring_->spend_lease(record_)) return {{}, Miss::budget};
    for (;;) {
        std::uint64_t oldest = UINT64_MAX;
        std::uint32_t slot = 0;
        for (std::uint32_t i = 0; i < ring_->header().slots; ++i) {
            const std::uint64_t word = ring_->slot(i).word.load(std::memory_order_relaxed);
            const std::uint64_t seq = SlotWord::seq(word);
            if (SlotWord::state(word) != SlotWord::ready || seq < since || (seq - since) % every != 0) continue;
            if (seq < oldest) {
                oldest = seq;
                slot = i;
            }
        }
        if (oldest == UINT64_MAX) {
            ring_->return_lease(record_);
            return {{}, Miss::not_yet};
        }
        if (ring_->take_lease(slot, oldest)) return ring_->lease(record_, slot);
    }
}

}  // namespace compass_edge
