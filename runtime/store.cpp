#include "runtime/store.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "runtime/error.hpp"

namespace compass_edge {

namespace {

// Readers of thinned frames keep their buffers for a while: a few spares keep sampling from stalling on them.
constexpr int spare_buffers = 4;

StoreOptions planned(StoreOptions options) {
    if (options.frame_bytes == 0 || options.every == 0 || options.max_frames < 2 || options.max_pins < 1) {
        throw Error(Fault::usage,
                    "A frame store needs frame_bytes, every and max_pins of at least 1 and max_frames of at least 2.");
    }
    const std::size_t stride = round_up(options.frame_bytes, row_alignment);
    const std::size_t room = options.max_bytes / stride;
    const std::size_t beside = static_cast<std::size_t>(options.max_pins + spare_buffers);
    if (room < beside + 2) {
        throw Error(Fault::usage,
                    "A frame store of " + std::to_string(options.max_bytes) + " bytes holds fewer than two frames of " +
                        std::to_string(options.frame_bytes) + " bytes beside its " + std::to_string(beside) +
                        " pins and spares. Raise max_bytes to at least " + std::to_string((beside + 2) * stride) + ".");
    }
    options.max_frames = static_cast<int>(std::min<std::size_t>(options.max_frames, room - beside));
    return options;
}

}  // namespace

std::shared_ptr<FrameStore> FrameStore::open(const StoreOptions& options) {
    return std::shared_ptr<FrameStore>(new FrameStore(planned(options)));
}

FrameStore::FrameStore(const StoreOptions& options)
    : options_(options),
      stride_bytes_(round_up(options.frame_bytes, row_alignment)),
      memory_(nullptr, std::free),
      buffers_(static_cast<std::size_t>(options.max_frames + options.max_pins + spare_buffers)) {
    stats_.bytes = stride_bytes_ * buffers_.size();
    memory_.reset(static_cast<std::uint8_t*>(std::aligned_alloc(row_alignment, stats_.bytes)));
    if (!memory_) {
        throw Error(Fault::environment, "A frame store of " + std::to_string(stats_.bytes >> 20) +
                                            " MiB does not fit in memory. Lower max_bytes or max_frames.");
    }
    stats_.stride = options_.every;
}

std::uint8_t* FrameStore::payload(const Buffer& buffer) const {
    return memory_.get() + stride_bytes_ * static_cast<std::size_t>(&buffer - buffers_.data());
}

void FrameStore::begin(std::uint64_t first_seq) {
    const std::lock_guard lock(mutex_);
    for (Buffer& buffer : buffers_) {
        if (!buffer.sampled && !buffer.pinned) continue;
        buffer.sampled = buffer.pinned = false;
        drop_unless_wanted(buffer);
    }
    const std::size_t bytes = stats_.bytes;
    stats_ = {};
    stats_.bytes = bytes;
    stats_.stride = options_.every;
    first_seq_ = next_seq_ = first_seq;
}

FrameStore::Buffer* FrameStore::find(std::uint64_t seq) {
    for (Buffer& buffer : buffers_) {
        if ((buffer.sampled || buffer.pinned) && buffer.info.seq == seq) return &buffer;
    }
    return nullptr;
}

FrameStore::Buffer* FrameStore::copy_in(const FrameRef& frame) {
    if (Buffer* there = find(frame.info().seq)) return there;
    const Geometry& from = frame.info().geometry;
    const Layout layout = packed_layout(from.format, from.width, from.height, from.matrix, from.range);
    if (layout.bytes > stride_bytes_) {
        throw Error(Fault::usage, "This store was planned for frames of " + std::to_string(stride_bytes_) +
                                      " bytes, and a " + std::to_string(from.width) + "x" +
                                      std::to_string(from.height) + " frame needs " + std::to_string(layout.bytes) +
                                      ". Open it with the ring's frame_bytes.");
    }
    for (Buffer& buffer : buffers_) {
        int unused = 0;
        // Acquire pairs with the release in FrameStore::release: the last reader is done with the bytes.
        if (!buffer.references.compare_exchange_strong(unused, 1, std::memory_order_acquire)) continue;
        buffer.info = frame.info();
        buffer.info.geometry = layout.geometry;
        copy_planes(frame.view(), layout.geometry, payload(buffer));
        return &buffer;
    }
    return nullptr;
}

void FrameStore::drop_unless_wanted(Buffer& buffer) {
    if (!buffer.sampled && !buffer.pinned) buffer.references.fetch_sub(1, std::memory_order_release);
}

void FrameStore::thin() {
    stats_.stride *= 2;
    for (Buffer& buffer : buffers_) {
        if (!buffer.sampled || (buffer.info.seq - first_seq_) % stats_.stride == 0) continue;
        buffer.sampled = false;
        --stats_.kept;
        ++stats_.thinned;
        drop_unless_wanted(buffer);
    }
}

bool FrameStore::offer(const FrameRef& frame) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t seq = frame.info().seq;
    if (seq < next_seq_ || (seq - first_seq_) % stats_.stride != 0) return false;
    if (stats_.kept == options_.max_frames) {
        thin();
        if ((seq - first_seq_) % stats_.stride != 0) return false;
    }
    Buffer* buffer = copy_in(frame);
    if (buffer == nullptr) {
        ++stats_.refused;
        return false;
    }
    buffer->sampled = true;
    next_seq_ = seq + 1;
    ++stats_.kept;
    return true;
}

void FrameStore::pin(const FrameRef& frame) {
    const std::lock_guard lock(mutex_);
    if (const Buffer* there = find(frame.info().seq); there != nullptr && there->pinned) return;
    if (stats_.pinned == options_.max_pins) {
        throw Error(Fault::usage, "This store pins at most " + std::to_string(options_.max_pins) +
                                      " frames, and all are in use. Unpin one or open the store with more max_pins.");
    }
    Buffer* buffer = copy_in(frame);
    if (buffer == nullptr) {
        throw Error(Fault::task,
                    "Every buffer of this store is held by a reader: drop some of the frames taken from it.");
    }
    buffer->pinned = true;
    ++stats_.pinned;
}

void FrameStore::unpin(std::uint64_t seq) {
    const std::lock_guard lock(mutex_);
    Buffer* buffer = find(seq);
    if (buffer == nullptr || !buffer->pinned) return;
    buffer->pinned = false;
    --stats_.pinned;
    drop_unless_wanted(*buffer);
}

FrameRef FrameStore::get(std::uint64_t seq) {
    const std::lock_guard lock(mutex_);
    Buffer* buffer = find(seq);
    if (buffer == nullptr) return {};
    buffer->references.fetch_add(1, std::memory_order_relaxed);
    return {shared_from_this(), static_cast<std::uint32_t>(buffer - buffers_.data()), 0, &buffer->info,
            payload(*buffer)};
}

std::vector<std::uint64_t> FrameStore::sequence_numbers() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::uint64_t> numbers;
    for (const Buffer& buffer : buffers_) {
        if (buffer.sampled || buffer.pinned) numbers.push_back(buffer.info.seq);
    }
    std::sort(numbers.begin(), numbers.end());
    return numbers;
}

StoreStats FrameStore::stats() const {
    const std::lock_guard lock(mutex_);
    return stats_;
}

// Release pairs with the acquire in copy_in.
void FrameStore::release(std::uint32_t buffer, std::uint32_t) noexcept {
    buffers_[buffer].references.fetch_sub(1, std::memory_order_release);
}

}  // namespace compass_edge
