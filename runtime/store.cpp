#include "runtime/store.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "runtime/error.hpp"

namespace compass_edge {

namespace {

StoreOptions planned(StoreOptions options) {
    if (options.frame_bytes == 0 || options.max_frames < 1) {
        throw Error(Fault::usage, "A frame store needs frame_bytes and max_frames of at least 1, got " +
                                      std::to_string(options.frame_bytes) + " and " +
                                      std::to_string(options.max_frames) + ".");
    }
    const std::size_t stride = round_up(options.frame_bytes, row_alignment);
    const std::size_t room = options.max_bytes / stride;
    if (room < 1) {
        throw Error(Fault::usage, "A frame store of " + std::to_string(options.max_bytes) +
                                      " bytes does not hold a frame of " + std::to_string(options.frame_bytes) +
                                      " bytes. Raise max_bytes to at least " + std::to_string(stride) +
                                      " for each of " + std::to_string(options.max_frames) + " frames.");
    }
    options.max_frames = static_cast<int>(std::min(static_cast<std::size_t>(options.max_frames), room));
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
      buffers_(static_cast<std::size_t>(options.max_frames)) {
    stats_.bytes = stride_bytes_ * buffers_.size();
    memory_.reset(static_cast<std::uint8_t*>(std::aligned_alloc(row_alignment, stats_.bytes)));
    if (!memory_) {
        throw Error(Fault::environment, "A frame store of " + std::to_string(stats_.bytes >> 20) +
                                            " MiB does not fit in memory. Lower max_bytes or max_frames.");
    }
}

std::uint8_t* FrameStore::payload(const Buffer& buffer) const {
    return memory_.get() + stride_bytes_ * static_cast<std::size_t>(&buffer - buffers_.data());
}

FrameStore::Buffer* FrameStore::find(std::uint64_t seq) {
    for (Buffer& buffer : buffers_) {
        if (buffer.kept && buffer.info.seq == seq) return &buffer;
    }
    return nullptr;
}

bool FrameStore::keep(const FrameRef& frame) {
    const Geometry& from = frame.info().geometry;
    const Layout layout = packed_layout(from.format, from.width, from.height, from.matrix, from.range);
    if (layout.bytes > stride_bytes_) {
        throw Error(Fault::usage, "This store was planned for frames of " + std::to_string(stride_bytes_) +
                                      " bytes, and a " + std::to_string(from.width) + "x" +
                                      std::to_string(from.height) + " frame needs " + std::to_string(layout.bytes) +
                                      ". Open it with the ring's frame_bytes.");
    }
    const std::lock_guard lock(mutex_);
    if (find(frame.info().seq) != nullptr) return true;
    for (Buffer& buffer : buffers_) {
        int unused = 0;
        // Acquire pairs with the releases in FrameStore::release and FrameStore::drop: the last reader is done with the
        // bytes.
        if (!buffer.references.compare_exchange_strong(unused, 1, std::memory_order_acquire)) continue;
        buffer.info = frame.info();
        buffer.info.geometry = layout.geometry;
        copy_planes(frame.view(), layout.geometry, payload(buffer));
        buffer.kept = true;
        ++stats_.kept;
        return true;
    }
    ++stats_.refused;
    return false;
}

// Release pairs with the acquire in keep.
void FrameStore::drop(Buffer& buffer) {
    buffer.kept = false;
    --stats_.kept;
    buffer.references.fetch_sub(1, std::memory_order_release);
}

void FrameStore::drop(std::uint64_t seq) {
    const std::lock_guard lock(mutex_);
    if (Buffer* buffer = find(seq)) drop(*buffer);
}

void FrameStore::clear() {
    const std::lock_guard lock(mutex_);
    for (Buffer& buffer : buffers_) {
        if (buffer.kept) drop(buffer);
    }
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
        if (buffer.kept) numbers.push_back(buffer.info.seq);
    }
    std::sort(numbers.begin(), numbers.end());
    return numbers;
}

StoreStats FrameStore::stats() const {
    const std::lock_guard lock(mutex_);
    return stats_;
}

// Release pairs with the acquire in keep.
void FrameStore::release(std::uint32_t buffer, std::uint32_t) noexcept {
    buffers_[buffer].references.fetch_sub(1, std::memory_order_release);
}

}  // namespace compass_edge
