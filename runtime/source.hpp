// Source: takes compressed packets from a file, a network stream or a camera, by URL.
//
//   Source source({.url = "rtsp://camera/stream"});
//   while (source.read() == ReadState::packet) decoder.send(source.packet(), source.captured_ns());
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

struct AVCodecParameters;
struct AVPacket;

namespace compass_edge {

struct SourceOptions {
    std::string url;                               // a path, rtsp://..., tcp://..., /dev/video0 or v4l2:///dev/video0
    double timeout_s = 5.0;                        // a source that delivers nothing for so long has stalled
    std::string format{};                          // FFmpeg's name of the container or device; guessed when empty
    std::map<std::string, std::string> options{};  // handed to FFmpeg, e.g. rtsp_transport=tcp or framerate=30

    std::string scheme() const;  // "rtsp" of rtsp://...; empty for a path
    bool is_device() const;      // a V4L2 camera
    bool is_live() const;        // delivers in its own time: a camera or a network stream, but not a file on the web
};

struct StreamInfo {
    std::string codec;
    std::string pixel_format;  // FFmpeg's name
    int width = 0;             // as shown: after rotation
    int height = 0;
    int rotation = 0;         // clockwise degrees that the decoder applies: 0, 90, 180, 270
    double frame_rate = 0;    // 0 when the stream does not say
    double start_s = 0;       // of the first picture, as the container says
    double duration_s = 0;    // 0 when unknown or endless
    std::int64_t frames = 0;  // as the container counts them; 0 when it does not
    std::int32_t time_base_num = 1;
    std::int32_t time_base_den = 1;
    int reorder_delay = 0;  // frames the decoder holds back to restore display order
    bool live = false;      // delivers in its own time and cannot seek
};

// packet: packet() is new. end: the stream is over. stalled: nothing came within the time-out.
// broken: the connection or the container failed; a live source is worth reopening.
enum class ReadState { packet, end, stalled, broken };

// One thread at a time, except interrupt(). read() blocks until a packet, the end or the time-out.
class Source {
  public:
    // Throws Error: usage for a path that is not a readable video, task for a stream that does not answer.
    explicit Source(SourceOptions options);
    ~Source();

    const StreamInfo& info() const { return info_; }
    const SourceOptions& options() const { return options_; }
    const AVCodecParameters& parameters() const;

    ReadState read();
    const AVPacket& packet() const;                            // valid after ReadState::packet until the next call
    std::int64_t captured_ns() const { return captured_ns_; }  // when that packet was taken from the source
    const std::string& failure() const { return failure_; }    // why read() last said broken

    // Positions before or at the last key frame at or before `time_s`; false when the container cannot.
    bool seek(double time_s);
    // Drops the connection and opens it again. Throws as the constructor does; read() then says broken.
    void reopen();
    // Any thread: makes a call that waits for a device or the network return (as stalled, or by an Error while
    // opening). The read of a plain file goes on: it does not hang, and half a packet would be lost.
    void interrupt(bool on = true) { interrupted_.store(on, std::memory_order_relaxed); }

  private:
    struct Demuxer;
    void open();

    SourceOptions options_;
    StreamInfo info_;
    std::unique_ptr<Demuxer> demuxer_;
    std::int64_t captured_ns_ = 0;
    std::string failure_;
    std::atomic<bool> interrupted_{false};
};

}  // namespace compass_edge
