// Owners for FFmpeg's objects, and what differs between its versions (4.4 of Ubuntu 22.04 to 8).
#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libswscale/swscale.h>
}

#include <cstdint>
#include <memory>
#include <string>

namespace compass_edge::av {

struct Free {
    void operator()(AVFrame* frame) const { av_frame_free(&frame); }
    void operator()(AVPacket* packet) const { av_packet_free(&packet); }
    void operator()(AVCodecContext* context) const { avcodec_free_context(&context); }
    void operator()(AVFormatContext* context) const { avformat_close_input(&context); }
    void operator()(SwsContext* context) const { sws_freeContext(context); }
};

// A picture of more pixels is refused before anything is allocated for it: 8 times 4K.
constexpr std::int64_t max_pixels = std::int64_t{1} << 26;

using Frame = std::unique_ptr<AVFrame, Free>;
using Packet = std::unique_ptr<AVPacket, Free>;
using CodecContext = std::unique_ptr<AVCodecContext, Free>;
using FormatContext = std::unique_ptr<AVFormatContext, Free>;
using Scaler = std::unique_ptr<SwsContext, Free>;

// FFmpeg's words for one of its error codes.
std::string message(int code);

// FFmpeg prints to stderr unless told otherwise; what matters reaches the user as an Error or a count.
// Also registers the capture devices. Any thread, any number of times.
void start();

bool is_key(const AVFrame& frame);

// Clockwise quarter turns (0 to 3) that bring the stream's pictures upright.
int quarter_turns(const AVStream& stream);

// "5.1.6 (libavcodec 59.37.100)"
std::string version();

}  // namespace compass_edge::av
