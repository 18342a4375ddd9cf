#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "runtime/error.hpp"
#include "runtime/feed.hpp"

namespace compass_edge {

namespace {

constexpr double longest_s = 1e8;  // three years: beyond it a time is a mistake
constexpr double longest_key_interval_s = 10;

}  // namespace

void Feed::seek(double time_s) {
    const auto control = take_control();
    if (threaded_) throw Error(Fault::usage, "Stop the source before seeking in it.");
    if (info_.live) throw Error(Fault::usage, "'" + source_->options().url + "' is live and cannot be searched.");
    const double first_s = std::clamp(info_.start_s, -longest_s, 0.0);
    const double end_s = std::max(0.0, info_.start_s) + info_.duration_s + 1;
    const double last_s = info_.duration_s > 0 ? std::min(end_s, longest_s) : longest_s;
    if (!(time_s >= first_s && time_s <= last_s)) {
        throw Error(Fault::usage, "'" + source_->options().url + "' lasts " + std::to_string(info_.duration_s) +
                                      " s; cannot seek to " + std::to_string(time_s) + " s.");
    }
    sought_ = true;
    const double unit = static_cast<double>(info_.time_base_num) / info_.time_base_den;
    const auto target = static_cast<std::int64_t>(std::floor(time_s / unit + 1e-6));
    // A container without a good index lands after the target, behind the last picture or between key frames: start
    // further back until the picture is there and whole.
    const std::uint64_t damaged_packets = counted_.damaged_packets;
    for (double back_s = 0;; back_s = std::max(1.0, 4 * back_s)) {
        const double from_s = std::max(first_s, time_s - back_s);
        const bool damaged_for_good = !picture_.empty() && back_s > longest_key_interval_s;
        const bool landed = land(from_s, target);
        counted_.damaged_packets = damaged_packets;  // what a search skips between key frames is no damage
        if (landed || from_s == first_s || damaged_for_good) return;
    }
}

// Decodes from `from_s` to the picture on screen at `target`. False when starting earlier may do better.
bool Feed::land(double from_s, std::int64_t target) {
    if (!source_->seek(from_s) && !source_->seek(0)) source_->reopen();
    picture_.clear();
    ahead_.clear();
    finished_ = false;
    decoder_->flush();
    writer_.mark_gap();
    if (fetch(ahead_).has_value()) return false;  // nothing there: step() will say so
    if (ahead_.pts() == no_pts && target > 0) {
        throw Error(Fault::usage, "The pictures of '" + source_->options().url +
                                      "' carry no time stamps, so it cannot be "
                                      "searched. Convert it to mp4 or mkv.");
    }
    if (ahead_.pts() > target) return false;
    while (ahead_.pts() != no_pts && ahead_.pts() <= target) {
        picture_.clear();
        std::swap(picture_, ahead_);
        if (fetch(ahead_).has_value()) {
            ahead_.clear();
            break;
        }
    }
    return picture_.empty() || !picture_.damaged();
}

}  // namespace compass_edge
