#include "runtime/av.hpp"

#include <cmath>
#include <mutex>

extern "C" {
#include <libavdevice/avdevice.h>
#include <libavutil/display.h>
}

namespace compass_edge::av {

std::string message(int code) {
    char text[AV_ERROR_MAX_STRING_SIZE] = {};
    av_strerror(code, text, sizeof text);
    return text;
}

void start() {
    static std::once_flag once;
    std::call_once(once, [] {
        av_log_set_level(AV_LOG_QUIET);
        avdevice_register_all();
    });
}

bool is_key(const AVFrame& frame) {
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(58, 7, 100)
    return (frame.flags & AV_FRAME_FLAG_KEY) != 0;
#else
    return frame.key_frame != 0;
#endif
}

int quarter_turns(const AVStream& stream) {
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(60, 31, 102)
    const AVPacketSideData* side = av_packet_side_data_get(
        stream.codecpar->coded_side_data, stream.codecpar->nb_coded_side_data, AV_PKT_DATA_DISPLAYMATRIX);
    const std::uint8_t* data = side != nullptr && side->size >= 9 * sizeof(std::int32_t) ? side->data : nullptr;
#else
    std::size_t size = 0;
    const std::uint8_t* data = av_stream_get_side_data(&stream, AV_PKT_DATA_DISPLAYMATRIX, &size);
    if (size < 9 * sizeof(std::int32_t)) data = nullptr;
#endif
    if (data == nullptr) return 0;
    // The matrix gives the counter-clockwise angle of the stored picture.
    const double degrees = -av_display_rotation_get(reinterpret_cast<const std::int32_t*>(data));
    if (!std::isfinite(degrees)) return 0;
    return ((static_cast<int>(std::lround(degrees / 90.0)) % 4) + 4) % 4;
}

std::string version() {
    const unsigned codec = avcodec_version();
    return std::string(av_version_info()) + " (libavcodec " + std::to_string(AV_VERSION_MAJOR(codec)) + "." +
           std::to_string(AV_VERSION_MINOR(codec)) + "." + std::to_string(AV_VERSION_MICRO(codec)) + ")";
}

}  // namespace compass_edge::av
