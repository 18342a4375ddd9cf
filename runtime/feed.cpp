#include "runtime/feed.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>

#include "runtime/clock.hpp"
#include "runtime/converter.hpp"
#include "runtime/error.hpp"

namespace compass_edge {

namespace {

// Beyond the pictures it holds back for display order, a codec keeps a handful as references. One that wants more
// gets FFmpeg's own memory and a copy.
constexpr int reference_frames = 6;
constexpr double first_backoff_s = 0.25;

RingOptions plan_ring(const Source& source, const FeedOptions& options) {
    const StreamInfo& info = source.info();
    // A codec writes whole blocks and a few rows more: with room for them it can decode into the slot itself.
    const auto width = round_up(static_cast<std::size_t>(std::max(options.max_width, info.width)), 128);
    const auto height = round_up(static_cast<std::size_t>(std::max(options.max_height, info.height)), 32) + 32;
    const PixelFormat format = nearest_ring_format(source.parameters().format);
    RingOptions ring;
    ring.frame_bytes = packed_layout(format, static_cast<int>(width), static_cast<int>(height)).bytes;
    ring.history = options.history;
    ring.leases = options.leases;
    ring.in_flight = info.reorder_delay + reference_frames + options.threads;
    const double bytes = static_cast<double>(ring.frame_bytes) * (ring.history + ring.leases + ring.in_flight);
    if (bytes > static_cast<double>(options.max_bytes)) {
        throw Error(Fault::usage, "The ring for " + std::to_string(info.width) + "x" + std::to_string(info.height) +
                                      " pictures with history " + std::to_string(ring.history) + " and " +
                                      std::to_string(ring.leases) + " leases would take " +
                                      std::to_string(static_cast<long long>(bytes / (1 << 20))) +
                                      " MiB; max_bytes allows " + std::to_string(options.max_bytes >> 20) +
                                      " MiB. Ask for less history or fewer leases, or raise max_bytes.");
    }
    return ring;
}

}  // namespace

Feed::Feed(SourceOptions source, FeedOptions options)
    : options_(options), source_(std::make_unique<Source>(std::move(source))), info_(source_->info()) {
    if (options_.threads < 1 || options_.threads > 64) {
        throw Error(Fault::usage, "A codec runs on 1 to 64 threads, got " + std::to_string(options_.threads) + ".");
    }
    ring_ = FrameRing::open(plan_ring(*source_, options_));
    writer_ = ring_->writer();
    open_decoder();
}

void Feed::open_decoder() {
    picture_.clear();
    ahead_.clear();
    finished_ = false;
    const DecoderOptions options{
        .direct_slots = ring_->options().in_flight - 1, .threads = options_.threads, .source_id = options_.source_id};
    decoder_ = std::make_unique<Decoder>(*source_, writer_, options, counted_);
}

Feed::~Feed() {
    stop();
    picture_.clear();
    ahead_.clear();
}

FeedState Feed::state() const {
    const std::lock_guard lock(mutex_);
    return state_;
}

std::string Feed::failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
}

FeedStats Feed::stats() const {
    const std::lock_guard lock(mutex_);
    return stats_;
}

FeedState Feed::conclude(FeedState state, const std::string& why) {
    const std::lock_guard lock(mutex_);
    state_ = state;
    if (!why.empty()) failure_ = why;
    stats_.decoder = counted_;
    if (state == FeedState::ended && !sought_) {
        stats_.truncated = counted_.packets < static_cast<std::uint64_t>(std::max<std::int64_t>(info_.frames, 0));
    }
    return state;
}

// Delivery stopped: the next frame that comes, whenever it comes, has a gap before it.
FeedState Feed::lose(FeedState state, const std::string& why) {
    writer_.mark_gap();
    lost_ = info_.live && options_.reconnect;
    {
        const std::lock_guard lock(mutex_);
        ++stats_.stalls;
    }
    return conclude(state, why);
}

bool Feed::wait(double duration_s) {
    const std::int64_t until = monotonic_ns() + static_cast<std::int64_t>(duration_s * 1e9);
    while (monotonic_ns() < until) {
        if (stopping_.load(std::memory_order_relaxed)) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return !stopping_.load(std::memory_order_relaxed);
}

bool Feed::recover() {
    if (!wait(backoff_s_)) return false;
    backoff_s_ = std::min(std::max(2 * backoff_s_, first_backoff_s), options_.max_backoff_s);
    try {
        source_->reopen();
        open_decoder();
    } catch (const Error& error) {
        conclude(FeedState::stalled, error.what());
        return false;
    }
    lost_ = false;
    const std::lock_guard lock(mutex_);
    ++stats_.reconnects;
    return true;
}

// The next decoded picture, or the state that stands in its way.
std::optional<FeedState> Feed::fetch(Picture& picture) {
    while (!decoder_->receive(picture)) {
        if (finished_) return FeedState::ended;
        switch (source_->read()) {
            case ReadState::packet:
                decoder_->send(source_->packet(), source_->captured_ns());
                break;
            case ReadState::broken:
                if (info_.live) return FeedState::failed;
                [[fallthrough]];  // a file that cannot be read on ends here, with what it gave
            case ReadState::end:
                decoder_->finish();
                finished_ = true;
                break;
            case ReadState::stalled:
                return FeedState::stalled;
        }
    }
    return std::nullopt;
}

FeedState Feed::advance() {
    if (lost_ && !recover()) return FeedState::stalled;
    for (;;) {
        if (picture_.empty()) std::swap(picture_, ahead_);
        if (const auto obstacle = picture_.empty() ? fetch(picture_) : std::nullopt) {
            switch (*obstacle) {
                case FeedState::stalled:
                    return lose(FeedState::stalled, "Nothing came from '" + source_->options().url + "' for " +
                                                        std::to_string(source_->options().timeout_s) + " s.");
                case FeedState::failed: {
                    const std::string why = "'" + source_->options().url + "' broke off: " + source_->failure() + ".";
                    return lose(options_.reconnect ? FeedState::stalled : FeedState::failed, why);
                }
                default:
                    return conclude(FeedState::ended);
            }
        }
        if (options_.realtime && threaded_) pace(picture_.pts());
        if (!decoder_->publish(picture_)) continue;
        backoff_s_ = 0;
        return conclude(FeedState::running);
    }
}

FeedState Feed::step() {
    if (threaded_) {
        throw Error(Fault::usage, "This source runs on its own thread: read its ring, or stop() it and step it yourself.");
    }
    return advance();
}

void Feed::seek(double time_s) {
    if (threaded_) throw Error(Fault::usage, "Stop the source before seeking in it.");
    if (info_.live) throw Error(Fault::usage, "'" + source_->options().url + "' is live and cannot be searched.");
    if (!(time_s >= 0) || (info_.duration_s > 0 && time_s > info_.duration_s + 1)) {
        throw Error(Fault::usage, "'" + source_->options().url + "' lasts " + std::to_string(info_.duration_s) +
                                      " s; cannot seek to " + std::to_string(time_s) + " s.");
    }
    sought_ = true;
    const double unit = static_cast<double>(info_.time_base_num) / info_.time_base_den;
    const auto target = static_cast<std::int64_t>(std::floor(time_s / unit + 1e-6));
    // Containers without a good index land after the target: start further back until the first picture is early enough.
    for (double back_s = 0;; back_s = std::max(1.0, 4 * back_s)) {
        const double from_s = std::max(0.0, time_s - back_s);
        if (!source_->seek(from_s) && !source_->seek(0)) source_->reopen();
        picture_.clear();
        ahead_.clear();
        finished_ = false;
        decoder_->flush();
        writer_.mark_gap();
        if (fetch(ahead_).has_value()) return;  // nothing there: step() will say so
        if (ahead_.pts() == no_pts || ahead_.pts() <= target || from_s == 0) break;
    }
    // Decode on until the picture after the target; the one before it is on screen.
    while (ahead_.pts() != no_pts && ahead_.pts() <= target) {
        picture_.clear();
        std::swap(picture_, ahead_);
        if (fetch(ahead_).has_value()) {
            ahead_.clear();
            break;
        }
    }
}

void Feed::pace(std::int64_t pts) {
    if (pts == no_pts) return;
    const double unit = static_cast<double>(info_.time_base_num) / info_.time_base_den;
    if (pace_origin_ns_ == 0) {
        pace_origin_ns_ = monotonic_ns();
        pace_origin_pts_ = pts;
    }
    const double due_s = static_cast<double>(pts - pace_origin_pts_) * unit;
    wait(due_s - static_cast<double>(monotonic_ns() - pace_origin_ns_) / 1e9);
}

void Feed::run() {
    while (!stopping_.load(std::memory_order_relaxed)) {
        FeedState state;
        try {
            state = advance();
        } catch (const std::exception& error) {
            conclude(FeedState::failed, error.what());
            return;
        }
        if (state == FeedState::ended || state == FeedState::failed) return;
        if (state == FeedState::stalled && !options_.reconnect) return;
    }
}

void Feed::start() {
    if (threaded_) throw Error(Fault::usage, "This source runs already.");
    threaded_ = true;
    pace_origin_ns_ = 0;
    thread_ = std::thread(&Feed::run, this);
}

void Feed::stop() {
    if (!threaded_) return;
    stopping_.store(true, std::memory_order_relaxed);
    source_->interrupt();
    thread_.join();
    threaded_ = false;
    source_->interrupt(false);
    stopping_.store(false, std::memory_order_relaxed);
}

}  // namespace compass_edge
