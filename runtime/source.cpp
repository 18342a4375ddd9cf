#include "runtime/source.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/av.hpp"
#include "runtime/clock.hpp"
#include "runtime/error.hpp"

extern "C" {
#include <libavutil/pixdesc.h>
}

namespace compass_edge {

namespace {

namespace fs = std::filesystem;

// A demuxer that fails this often in a row on one file will not recover.
constexpr int patience = 16;
constexpr std::int64_t nanoseconds = 1'000'000'000;

std::string scheme_of(const std::string& url) {
    const std::size_t end = url.find("://");
    return end == std::string::npos ? "" : url.substr(0, end);
}

bool is_device(const SourceOptions& options) {
    return options.format == "v4l2" || options.format == "video4linux2" || scheme_of(options.url) == "v4l2" ||
           options.url.rfind("/dev/video", 0) == 0;
}

bool is_live(const SourceOptions& options) {
    const std::string scheme = scheme_of(options.url);
    return is_device(options) || (!scheme.empty() && scheme != "file" && scheme != "http" && scheme != "https");
}

bool is_plain_file(const std::string& path) {
    std::error_code ignored;
    return fs::is_regular_file(path, ignored);
}

bool starts_like_mp4(const std::string& path) {
    char head[12] = {};
    std::ifstream(path, std::ios::binary).read(head, sizeof head);
    return std::string(head + 4, 4) == "ftyp";
}

bool is_cover_picture(const AVStream& stream) { return (stream.disposition & AV_DISPOSITION_ATTACHED_PIC) != 0; }

// The video stream to decode; AVERROR_STREAM_NOT_FOUND when there is none but a music file's cover.
int best_video_stream(AVFormatContext& context) {
    const int best = av_find_best_stream(&context, AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
    if (best < 0 || !is_cover_picture(*context.streams[best])) return best;
    for (unsigned i = 0; i < context.nb_streams; ++i) {
        const AVStream& stream = *context.streams[i];
        if (stream.codecpar->codec_type == AVMEDIA_TYPE_VIDEO && !is_cover_picture(stream)) return static_cast<int>(i);
    }
    return AVERROR_STREAM_NOT_FOUND;
}

// FFmpeg decodes a little to find out what a stream is: it must not be talked into a giant picture there either.
int find_stream_info(AVFormatContext& context) {
    std::vector<AVDictionary*> limits(context.nb_streams, nullptr);
    for (AVDictionary*& limit : limits) av_dict_set_int(&limit, "max_pixels", av::max_pixels, 0);
    const int code = avformat_find_stream_info(&context, limits.empty() ? nullptr : limits.data());
    for (AVDictionary*& limit : limits) av_dict_free(&limit);
    return code;
}

// Turns "it did not open" into what a person can act on.
[[noreturn]] void explain(const SourceOptions& options, int code, bool timed_out) {
    const std::string quoted = "'" + options.url + "'";
    if (timed_out) {
        throw Error(Fault::task,
                    quoted + " did not answer within " + std::to_string(options.timeout_s) +
                        " s. Check that the camera or the sender runs and can be reached, or raise timeout_s.");
    }
    if (is_device(options)) {
        throw Error(Fault::usage, "No frames could be had from the camera " + quoted + ": " + av::message(code) +
                                      ". `v4l2-ctl --list-devices` shows which devices exist; reading one needs the "
                                      "group `video`.");
    }
    if (is_live(options)) {
        throw Error(Fault::task, "No stream could be opened at " + quoted + ": " + av::message(code) +
                                     ". Check the address and that the sender runs.");
    }
    std::error_code ignored;
    const fs::file_status status = fs::status(options.url, ignored);
    if (scheme_of(options.url).empty()) {
        if (!fs::exists(status)) throw Error(Fault::usage, "There is no file " + quoted + ". Check the path.");
        if (fs::is_directory(status)) {
            throw Error(Fault::usage, quoted + " is a folder; expected a video file. Name one file in it.");
        }
        if (fs::is_regular_file(status) && fs::file_size(options.url, ignored) == 0) {
            throw Error(Fault::usage, quoted + " is empty (0 bytes); expected a video. Copy or record it again.");
        }
        if (code == AVERROR(EACCES)) throw Error(Fault::usage, quoted + " may not be read by this user.");
        if (is_plain_file(options.url) && starts_like_mp4(options.url)) {
            throw Error(Fault::usage, quoted +
                                          " is an MP4 without a readable index (moov): it is damaged, or its "
                                          "recording or copying was cut off. Copy or record it again.");
        }
    }
    throw Error(Fault::usage, quoted + " is not a video that FFmpeg can read: " + av::message(code) +
                                  ". Expected a video file such as mp4, mkv, avi or mjpeg.");
}

}  // namespace

struct Source::Demuxer {
    decltype(AVFormatContext::io_open) open_any = nullptr;
    av::FormatContext context;
    av::Packet packet{av_packet_alloc()};
    int stream = -1;
    std::int64_t deadline_ns = 0;
    const std::atomic<bool>* interrupted = nullptr;  // null: a plain file

    bool expired() const {
        return monotonic_ns() > deadline_ns || (interrupted != nullptr && interrupted->load(std::memory_order_relaxed));
    }
    void allow(double seconds) {
        deadline_ns = monotonic_ns() + static_cast<std::int64_t>(seconds * static_cast<double>(nanoseconds));
    }

    // A playlist, or whatever else names other files and hosts, must not make us open them: the named file is opened
    // and then no protocol is allowed any more, to this demuxer and to those it may start.
    static int open_one_file(AVFormatContext* context, AVIOContext** io, const char* url, int flags,
                             AVDictionary** options) {
        const auto* self = static_cast<const Demuxer*>(context->opaque);
        const int code = self->open_any(context, io, url, flags, options);
        av_freep(&context->protocol_whitelist);
        context->protocol_whitelist = av_strdup("none");
        return code;
    }
};

Source::Source(SourceOptions options) : options_(std::move(options)) {
    if (options_.url.empty()) throw Error(Fault::usage, "A source needs a URL: a path, rtsp://... or /dev/video0.");
    if (!(options_.timeout_s > 0) || options_.timeout_s > 1e6) {
        throw Error(Fault::usage, "timeout_s must be above 0 seconds, got " + std::to_string(options_.timeout_s) + ".");
    }
    if (options_.url.find('\0') != std::string::npos) {
        throw Error(Fault::usage, "A source's URL must not contain a zero byte.");
    }
    std::error_code ignored;
    if (scheme_of(options_.url).empty() && fs::is_fifo(options_.url, ignored)) {
        throw Error(Fault::usage, "'" + options_.url +
                                      "' is a named pipe, which would block until somebody writes to it. Send the "
                                      "stream over tcp:// or rtsp:// instead.");
    }
    av::start();
    open();
}

Source::~Source() = default;

void Source::reopen() {
    demuxer_.reset();  // first: a camera, or a port that is listened on, can be had only once
    open();
}

void Source::open() {
    auto demuxer = std::make_unique<Demuxer>();
    const bool plain_file = is_plain_file(options_.url);
    if (!plain_file) demuxer->interrupted = &interrupted_;
    demuxer->allow(options_.timeout_s);
    AVFormatContext* context = avformat_alloc_context();
    context->interrupt_callback = {[](void* self) { return static_cast<int>(static_cast<Demuxer*>(self)->expired()); },
                                   demuxer.get()};
    const bool live = is_live(options_);
    std::string url = options_.url;
    std::string format = options_.format;
    if (is_device(options_)) {
        if (scheme_of(url) == "v4l2") url = url.substr(7);
        if (format.empty()) format = "v4l2";
        context->flags |= AVFMT_FLAG_NONBLOCK;  // its blocking read cannot be interrupted; read() polls instead
    }

    if (plain_file && scheme_of(url).empty()) url = "file:" + url;  // FFmpeg would take "12:30.mp4" for a protocol

    AVDictionary* settings = nullptr;
    if (!live && options_.options.count("protocol_whitelist") == 0) {
        const bool web = scheme_of(url).rfind("http", 0) == 0;
        av_dict_set(&settings, "protocol_whitelist", web ? "http,https,tcp,tls,crypto,data" : "file", 0);
        if (!web) {
            context->opaque = demuxer.get();
            demuxer->open_any = std::exchange(context->io_open, Demuxer::open_one_file);
        }
    }
    for (const auto& [key, value] : options_.options) av_dict_set(&settings, key.c_str(), value.c_str(), 0);
    auto* input = format.empty() ? nullptr : av_find_input_format(format.c_str());
    if (!format.empty() && input == nullptr) {
        av_dict_free(&settings);
        avformat_free_context(context);
        throw Error(Fault::usage, "FFmpeg here knows no input format '" + format + "'. `ffmpeg -formats` lists them.");
    }
    int code = avformat_open_input(&context, url.c_str(), input, &settings);  // frees the context when it fails
    const AVDictionaryEntry* unknown = av_dict_get(settings, "", nullptr, AV_DICT_IGNORE_SUFFIX);
    const std::string unknown_option = unknown != nullptr ? unknown->key : "";
    av_dict_free(&settings);
    if (code < 0) explain(options_, code, demuxer->expired());
    demuxer->context.reset(context);
    if (options_.options.count(unknown_option) != 0) {
        throw Error(Fault::usage, "FFmpeg's '" + std::string(context->iformat->name) + "' input has no option '" +
                                      unknown_option + "'. `ffmpeg -h demuxer=" + context->iformat->name +
                                      "` lists its options.");
    }
    // Looking at a stream that delivers must not use up the time after which one that does not is given up.
    context->max_analyze_duration = static_cast<std::int64_t>(options_.timeout_s / 2 * AV_TIME_BASE);
    code = find_stream_info(*context);
    if (code < 0) explain(options_, code, demuxer->expired());
    demuxer->stream = best_video_stream(*context);
    if (demuxer->stream < 0) {
        if (demuxer->expired()) explain(options_, AVERROR_EXIT, true);
        throw Error(Fault::usage, "'" + options_.url + "' has no video stream (FFmpeg reads it as " +
                                      context->iformat->long_name + "). Expected a video.");
    }
    for (unsigned i = 0; i < context->nb_streams; ++i) {
        context->streams[i]->discard = static_cast<int>(i) == demuxer->stream ? AVDISCARD_DEFAULT : AVDISCARD_ALL;
    }

    AVStream& stream = *context->streams[demuxer->stream];
    const AVCodecParameters& codec = *stream.codecpar;
    if (codec.width < 1 || codec.height < 1) {
        if (demuxer->expired()) explain(options_, AVERROR_EXIT, true);
        throw Error(Fault::usage, "'" + options_.url +
                                      "' has a video stream whose picture size cannot be found: it is "
                                      "damaged or ends before its first picture.");
    }
    const int turns = av::quarter_turns(stream);
    StreamInfo info;
    info.codec = avcodec_get_name(codec.codec_id);
    const char* pixel_format = av_get_pix_fmt_name(static_cast<AVPixelFormat>(codec.format));
    info.pixel_format = pixel_format != nullptr ? pixel_format : "unknown";
    info.width = turns % 2 == 0 ? codec.width : codec.height;
    info.height = turns % 2 == 0 ? codec.height : codec.width;
    info.rotation = 90 * turns;
    const AVRational rate = av_guess_frame_rate(context, &stream, nullptr);
    if (rate.num > 0 && rate.den > 0) info.frame_rate = av_q2d(rate);
    if (stream.start_time != AV_NOPTS_VALUE) {
        info.start_s = static_cast<double>(stream.start_time) * av_q2d(stream.time_base);
    }
    if (stream.duration > 0) {
        info.duration_s = static_cast<double>(stream.duration) * av_q2d(stream.time_base);
    } else if (context->duration > 0) {
        info.duration_s = static_cast<double>(context->duration) / AV_TIME_BASE;
    }
    info.frames = stream.nb_frames;
    info.time_base_num = stream.time_base.num;
    info.time_base_den = stream.time_base.den;
    info.reorder_delay = codec.video_delay;
    info.live = live;
    info_ = info;
    demuxer_ = std::move(demuxer);
}

const AVCodecParameters& Source::parameters() const { return *demuxer_->context->streams[demuxer_->stream]->codecpar; }

const AVPacket& Source::packet() const { return *demuxer_->packet; }

ReadState Source::read() {
    if (!demuxer_) {
        failure_ = "it could not be opened again";
        return ReadState::broken;
    }
    Demuxer& demuxer = *demuxer_;
    demuxer.allow(options_.timeout_s);
    for (int faults = 0;;) {
        av_packet_unref(demuxer.packet.get());
        const int code = av_read_frame(demuxer.context.get(), demuxer.packet.get());
        if (code == 0) {
            if (demuxer.packet->stream_index != demuxer.stream) continue;
            captured_ns_ = monotonic_ns();
            return ReadState::packet;
        }
        if (demuxer.expired() || code == AVERROR_EXIT) return ReadState::stalled;
        if (code == AVERROR(EAGAIN)) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            continue;
        }
        failure_ = av::message(code);
        if (code == AVERROR_EOF) return info_.live ? ReadState::broken : ReadState::end;
        if (info_.live || ++faults == patience) return ReadState::broken;
    }
}

bool Source::seek(double time_s) {
    if (!demuxer_) return false;
    const AVRational base{info_.time_base_num, info_.time_base_den};
    const auto target = static_cast<std::int64_t>(time_s / av_q2d(base));
    demuxer_->allow(options_.timeout_s);
    return avformat_seek_file(demuxer_->context.get(), demuxer_->stream, INT64_MIN, target, target, 0) >= 0;
}

}  // namespace compass_edge
