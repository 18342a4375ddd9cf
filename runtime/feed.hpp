// Feed: a source, its decoder and the ring they fill.
//
//   Feed feed({.url = "episode.mp4"}, {});
//   Reader reader = feed.ring()->reader();
//   while (feed.step() == FeedState::running) use(reader.latest().frame);     // recorded: the caller pulls
//
//   Feed camera({.url = "/dev/video0"}, {});
//   camera.start();                                                           // live: its own thread pushes
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "runtime/decoder.hpp"
#include "runtime/ring.hpp"
#include "runtime/source.hpp"

namespace compass_edge {

struct FeedOptions {
    int history = 8;
    int leases = 8;
    int max_width = 0;  // the largest picture that may come; 0: the stream's own
    int max_height = 0;
    std::size_t max_bytes = std::size_t{1} << 30;  // of the ring
    std::uint32_t source_id = 0;                   // written into every frame
    int threads = 1;                               // of the codec
    bool realtime = false;                         // start(): a file is played at its own pace, as a camera would
    bool reconnect = true;                         // a live source that stalls or breaks is opened again
    double max_backoff_s = 8.0;                    // waits between attempts double from 0.25 s up to this
    DecodeOn decoder = DecodeOn::software;
};

// running: a frame was published. ended: no more will come. stalled: nothing came within the time-out; the next step
// tries again. failed: a live source broke and reconnect is off.
enum class FeedState { running, ended, stalled, failed };

struct FeedStats {
    DecoderStats decoder;
    std::uint64_t stalls = 0;
    std::uint64_t reconnects = 0;
    bool truncated = false;  // the file ended before the frames its container promised
};

class Feed {
  public:
    // Throws as Source and Decoder do, and Error (usage) when the ring would exceed max_bytes.
    Feed(SourceOptions source, FeedOptions options);
    ~Feed();

    const StreamInfo& info() const { return info_; }
    const std::shared_ptr<FrameRing>& ring() const { return ring_; }

    // step, seek, start and stop may be called from any thread, one at a time: a second caller gets an Error (usage),
    // and stop() waits for its turn.

    // Publishes the next frame. Blocks until there is one, the end, or the time-out. Not while a thread runs.
    FeedState step();
    // The next step publishes the frame that is on screen at `time_s`, on the scale of the frames' own time stamps.
    // Throws Error (usage) for a live source, a stream without time stamps or a time outside the recording. Not while a
    // thread runs.
    void seek(double time_s);

    // Runs step() on a thread of its own until the end, a failure or stop().
    void start();
    // Ends that thread, at once even if the source hangs. Frames already published stay readable; step() and start()
    // go on from there, a live source with a new connection. Harmless when no thread runs.
    void stop();

    // Any thread.
    FeedState state() const;
    std::string failure() const;
    FeedStats stats() const;

  private:
    std::unique_lock<std::mutex> take_control();
    FeedState advance();
    std::optional<FeedState> fetch(Picture& picture);
    FeedState lose(FeedState state, const std::string& why);
    FeedState pause();
    bool land(double from_s, std::int64_t target);
    bool recover();
    void open_decoder();
    bool wait(double seconds);
    void run();
    void pace(std::int64_t pts);
    FeedState conclude(FeedState state, const std::string& why = {});

    FeedOptions options_;
    std::unique_ptr<Source> source_;
    StreamInfo info_;
    std::shared_ptr<FrameRing> ring_;
    Writer writer_;
    DecoderStats counted_;
    std::unique_ptr<Decoder> decoder_;
    Picture picture_;  // the next to publish
    Picture ahead_;    // after a seek, the one behind it
    bool finished_ = false;
    bool lost_ = false;
    bool sought_ = false;
    bool threaded_ = false;
    double backoff_s_ = 0;
    std::int64_t pace_origin_ns_ = 0;
    std::int64_t pace_origin_pts_ = 0;
    std::int64_t paced_pts_ = 0;

    std::mutex control_;
    std::thread thread_;
    std::atomic<bool> stopping_{false};
    mutable std::mutex mutex_;  // guards what other threads may ask for, below
    FeedState state_ = FeedState::running;
    std::string failure_;
    FeedStats stats_;
};

}  // namespace compass_edge
