#include "runtime/source.hpp"

#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/av.hpp"
#include "runtime/clock.hpp"
#include "runtime/error.hpp"
#include "runtime/source_error.hpp"

extern "C" {
#include <libavutil/pixdesc.h>
}

namespace compass_edge {

namespace {

namespace fs = std::filesystem;

// A demuxer that fails this often in a row on one file will not recover.
constexpr int patience = 16;
constexpr std::int64_t nanoseconds = 1'000'000'000;

bool is_plain_file(const std::string& path) {
    std::error_code ignored;
    return fs::is_regular_file(path, ignored);
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

}  // namespace

struct Source::Demuxer {
    decltype(AVFormatContext::io_open) open_any = nullptr;
    av::FormatContext context;
    av::Packet packet{av_packet_alloc()};
    int stream = -1;
    std::int64_t deadline_ns = 0;
    const std::atomic<bool>* interrupted = nullptr;  // null: a plain file
    // Opening a live stream reads ahead: what came between these two times waits in FFmpeg's queue.
    std::int64_t asked_ns = 0;
    std::int64_t answered_ns = 0;
    std::int64_t first_dts = AV_NOPTS_VALUE;

    // When the packet came from its source. One that opening read ahead must not look fresher than it is: it is dated
    // by its distance in time from the first packet, as if that one had come at once.
    std::int64_t arrival_ns(AVRational time_base) {
        const std::int64_t now = monotonic_ns();
        const std::int64_t dts = packet->dts;  // packets come in this order
        if (answered_ns == 0 || dts == AV_NOPTS_VALUE) return now;
        if (first_dts == AV_NOPTS_VALUE) first_dts = dts;
        const std::int64_t arrived = asked_ns + av_rescale_q(dts - first_dts, time_base, {1, 1'000'000'000});
        if (arrived < asked_ns || arrived >= answered_ns) {
            answered_ns = 0;  // the queue is empty; from here on packets come as they are read
            return now;
        }
        return arrived;
    }

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

std::string SourceOptions::scheme() const {
    const std::size_t end = url.find("://");
    return end == std::string::npos ? "" : url.substr(0, end);
}

bool SourceOptions::is_device() const {
    return format == "v4l2" || format == "video4linux2" || scheme() == "v4l2" || url.rfind("/dev/video", 0) == 0;
}

bool SourceOptions::is_live() const {
    const std::string name = scheme();
    return is_device() || (!name.empty() && name != "file" && name != "http" && name != "https");
}

Source::Source(SourceOptions options) : options_(std::move(options)) {
    if (options_.url.empty()) throw Error(Fault::usage, "A source needs a URL: a path, rtsp://... or /dev/video0.");
    if (!(options_.timeout_s > 0) || options_.timeout_s > 1e6) {
        throw Error(Fault::usage, "timeout_s must be above 0 seconds, got " + std::to_string(options_.timeout_s) + ".");
    }
    if (options_.url.find('\0') != std::string::npos) {
        throw Error(Fault::usage, "A source's URL must not contain a zero byte.");
    }
    std::error_code ignored;
    if (options_.scheme().empty() && fs::is_fifo(options_.url, ignored)) {
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
    demuxer->asked_ns = monotonic_ns();
    AVFormatContext* context = avformat_alloc_context();
    context->interrupt_callback = {[](void* self) { return static_cast<int>(static_cast<Demuxer*>(self)->expired()); },
                                   demuxer.get()};
    const bool live = options_.is_live();
    std::string url = options_.url;
    std::string format = options_.format;
    if (options_.is_device()) {
        if (options_.scheme() == "v4l2") url = url.substr(7);
        if (format.empty()) format = "v4l2";
        context->flags |= AVFMT_FLAG_NONBLOCK;  // its blocking read cannot be interrupted; read() polls instead
    }

    if (plain_file && options_.scheme().empty()) url = "file:" + url;  // FFmpeg would take "12:30.mp4" for a protocol

    AVDictionary* settings = nullptr;
    if (!live && options_.options.count("protocol_whitelist") == 0) {
        const bool web = options_.scheme().rfind("http", 0) == 0;
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
    if (code < 0) explain_failed_open(options_, code, demuxer->expired());
    demuxer->context.reset(context);
    if (options_.options.count(unknown_option) != 0) {
        throw Error(Fault::usage, "FFmpeg's '" + std::string(context->iformat->name) + "' input has no option '" +
                                      unknown_option + "'. `ffmpeg -h demuxer=" + context->iformat->name +
                                      "` lists its options.");
    }
    // Looking at a stream that delivers must not use up the time after which one that does not is given up.
    context->max_analyze_duration = static_cast<std::int64_t>(options_.timeout_s / 2 * AV_TIME_BASE);
    code = find_stream_info(*context);
    if (code < 0) explain_failed_open(options_, code, demuxer->expired());
    demuxer->stream = best_video_stream(*context);
    if (demuxer->stream < 0) {
        if (demuxer->expired()) explain_failed_open(options_, AVERROR_EXIT, true);
        throw Error(Fault::usage, "'" + options_.url + "' has no video stream (FFmpeg reads it as " +
                                      context->iformat->long_name + "). Expected a video.");
    }
    for (unsigned i = 0; i < context->nb_streams; ++i) {
        context->streams[i]->discard = static_cast<int>(i) == demuxer->stream ? AVDISCARD_DEFAULT : AVDISCARD_ALL;
    }

    AVStream& stream = *context->streams[demuxer->stream];
    const AVCodecParameters& codec = *stream.codecpar;
    if (codec.width < 1 || codec.height < 1) {
        if (demuxer->expired()) explain_failed_open(options_, AVERROR_EXIT, true);
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
    if (live) demuxer->answered_ns = monotonic_ns();
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
            captured_ns_ = demuxer.arrival_ns({info_.time_base_num, info_.time_base_den});
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
