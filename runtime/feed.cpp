#include "runtime/feed.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <system_error>

#include "runtime/clock.hpp"
#include "runtime/converter.hpp"
#include "runtime/error.hpp"

namespace compass_edge {

namespace {

// Beyond the pictures it holds back for display order, a codec keeps a handful as references. One that wants more
// gets FFmpeg's own memory and a copy.
constexpr int reference_frames = 6;
constexpr double first_backoff_s = 0.25;
constexpr double longest_pause_s = 60;  // between two pictures of a file that is played at its own pace

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
    if (!(options_.max_backoff_s > 0) || options_.max_backoff_s > 1e6) {
        throw Error(Fault::usage, "max_backoff_s must be above 0 seconds, got " +
                                      std::to_string(options_.max_backoff_s) +
                                      ". To give up at once, turn reconnect off.");
    }
    ring_ = FrameRing::open(plan_ring(*source_, options_));
    writer_ = ring_->writer();
    open_decoder();
}

void Feed::open_decoder() {
    picture_.clear();
    ahead_.clear();
    finished_ = false;
    const DecoderOptions options{.direct_slots = ring_->options().in_flight - 1,
                                 .threads = options_.threads,
                                 .source_id = options_.source_id,
                                 .on = options_.decoder};
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

// stop() cut the source short: no fault of the source's, but something may be missing now.
FeedState Feed::pause() {
    writer_.mark_gap();
    return FeedState::stalled;
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
        if (!stopping_.load(std::memory_order_relaxed)) conclude(FeedState::stalled, error.what());
        return false;
    }
    lost_ = false;
    const std::lock_guard lock(mutex_);
    ++stats_.reconnects;
    return true;
}

// The next decoded picture, or the state that stands in its way.
std::optional<FeedState> Feed::fetch(Picture& picture) {
    const std::int64_t until = monotonic_ns() + static_cast<std::int64_t>(source_->options().timeout_s * 1e9);
    while (!decoder_->receive(picture)) {
        if (finished_) return FeedState::ended;
        // Packets that make no pictures are no delivery.
        if (info_.live && monotonic_ns() > until) return FeedState::stalled;
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
            if (*obstacle != FeedState::ended && stopping_.load(std::memory_order_relaxed)) return pause();
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
        if (options_.realtime && threaded_) {
            pace(picture_.pts());
            if (stopping_.load(std::memory_order_relaxed)) return FeedState::stalled;  // the picture keeps
        }
        if (!decoder_->publish(picture_)) continue;
        backoff_s_ = 0;
        return conclude(FeedState::running);
    }
}

std::unique_lock<std::mutex> Feed::take_control() {
    std::unique_lock lock(control_, std::try_to_lock);
    if (!lock) throw Error(Fault::usage, "Another thread is using this source: one at a time may step or seek it.");
    return lock;
}

FeedState Feed::step() {
    const auto control = take_control();
    if (threaded_) {
        throw Error(Fault::usage,
                    "This source runs on its own thread: read its ring, or stop() it and step it yourself.");
    }
    return advance();
}

void Feed::pace(std::int64_t pts) {
    if (pts == no_pts) return;
    const double unit = static_cast<double>(info_.time_base_num) / info_.time_base_den;
    // Time stamps that jump (a damaged or joined file) start the pace anew.
    const double jump_s = static_cast<double>(pts) * unit - static_cast<double>(paced_pts_) * unit;
    paced_pts_ = pts;
    if (pace_origin_ns_ == 0 || jump_s < 0 || jump_s > longest_pause_s) {
        pace_origin_ns_ = monotonic_ns();
        pace_origin_pts_ = pts;
    }
    const double due_s = static_cast<double>(pts - pace_origin_pts_) * unit;
    const double wait_s = due_s - static_cast<double>(monotonic_ns() - pace_origin_ns_) / 1e9;
    wait(wait_s);
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
    const auto control = take_control();
    if (threaded_) throw Error(Fault::usage, "This source runs already.");
    pace_origin_ns_ = 0;
    threaded_ = true;
    try {
        thread_ = std::thread(&Feed::run, this);
    } catch (const std::system_error&) {
        threaded_ = false;
        throw Error(Fault::environment, "The system has no thread left for this source.");
    }
}

void Feed::stop() {
    const std::lock_guard control(control_);
    if (!threaded_) return;
    stopping_.store(true, std::memory_order_relaxed);
    source_->interrupt();
    thread_.join();
    threaded_ = false;
    if (info_.live) {  // what it sends meanwhile is missed, and stale when somebody starts again
        lost_ = true;
        writer_.mark_gap();
        picture_.clear();
        ahead_.clear();
    }
    source_->interrupt(false);
    stopping_.store(false, std::memory_order_relaxed);
}

}  // namespace compass_edge
