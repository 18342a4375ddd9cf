#include "runtime/converter.hpp"

#include <cstring>
#include <string>

#include "runtime/error.hpp"

extern "C" {
#include <libavutil/pixdesc.h>
}

namespace compass_edge {

namespace {

ColorMatrix matrix_of(const AVFrame& frame) {
    switch (frame.colorspace) {
        case AVCOL_SPC_BT709:
            return ColorMatrix::bt709;
        case AVCOL_SPC_BT2020_NCL:
        case AVCOL_SPC_BT2020_CL:
            return ColorMatrix::bt2020;
        default:
            return ColorMatrix::bt601;
    }
}

int swscale_matrix(ColorMatrix matrix) {
    return matrix == ColorMatrix::bt709 ? SWS_CS_ITU709 : matrix == ColorMatrix::bt2020 ? SWS_CS_BT2020 : SWS_CS_ITU601;
}

AVPixelFormat av_format(PixelFormat format) {
    switch (format) {
        case PixelFormat::yuv420p:
            return AV_PIX_FMT_YUV420P;
        case PixelFormat::nv12:
            return AV_PIX_FMT_NV12;
        case PixelFormat::yuyv:
            return AV_PIX_FMT_YUYV422;
        case PixelFormat::rgb24:
            return AV_PIX_FMT_RGB24;
        case PixelFormat::gray8:
            return AV_PIX_FMT_GRAY8;
    }
    return AV_PIX_FMT_NONE;
}

// The yuvj formats are yuv formats of full range under a second, deprecated name.
AVPixelFormat without_j(int format) {
    switch (format) {
        case AV_PIX_FMT_YUVJ420P:
            return AV_PIX_FMT_YUV420P;
        case AV_PIX_FMT_YUVJ422P:
            return AV_PIX_FMT_YUV422P;
        case AV_PIX_FMT_YUVJ444P:
            return AV_PIX_FMT_YUV444P;
        case AV_PIX_FMT_YUVJ440P:
            return AV_PIX_FMT_YUV440P;
        case AV_PIX_FMT_YUVJ411P:
            return AV_PIX_FMT_YUV411P;
        default:
            return static_cast<AVPixelFormat>(format);
    }
}

ColorRange range_of(const AVFrame& frame) {
    if (without_j(frame.format) != frame.format || frame.color_range == AVCOL_RANGE_JPEG) return ColorRange::full;
    const bool unsaid = frame.color_range == AVCOL_RANGE_UNSPECIFIED;
    return unsaid && nearest_ring_format(frame.format) == PixelFormat::gray8 ? ColorRange::full : ColorRange::limited;
}

ImageView view_of(const AVFrame& frame, PixelFormat format) {
    ImageView view;
    view.format = format;
    view.width = frame.width;
    view.height = frame.height;
    for (int plane = 0; plane < plane_count(format); ++plane) {
        view.data[plane] = frame.data[plane];
        view.stride[plane] = frame.linesize[plane];
    }
    return view;
}

// plane [host, u8] [rows, columns, sample bytes], turned clockwise into `to`, whose rows are the source's columns for
// odd quarter turns.
template <int sample>
void rotate_plane(const std::uint8_t* from, std::ptrdiff_t from_stride, int columns, int rows, int quarter_turns,
                  std::uint8_t* to, std::ptrdiff_t to_stride) {
    for (int y = 0; y < rows; ++y) {
        const std::uint8_t* source = from + y * from_stride;
        for (int x = 0; x < columns; ++x, source += sample) {
            const int row = quarter_turns == 1 ? x : quarter_turns == 2 ? rows - 1 - y : columns - 1 - x;
            const int column = quarter_turns == 1 ? rows - 1 - y : quarter_turns == 2 ? columns - 1 - x : y;
            std::memcpy(to + row * to_stride + column * sample, source, sample);
        }
    }
}

void rotate(const ImageView& from, int quarter_turns, const Geometry& geometry, std::uint8_t* base) {
    for (int plane = 0; plane < plane_count(from.format); ++plane) {
        const PlaneExtent extent = plane_extent(from.format, plane, from.width, from.height);
        const int sample = from.format == PixelFormat::rgb24                ? 3
                           : from.format == PixelFormat::nv12 && plane == 1 ? 2
                                                                            : 1;
        const auto turn = sample == 3 ? rotate_plane<3> : sample == 2 ? rotate_plane<2> : rotate_plane<1>;
        turn(from.data[plane], from.stride[plane], extent.row_bytes / sample, extent.rows, quarter_turns,
             base + geometry.offset[plane], geometry.stride[plane]);
    }
}

}  // namespace

std::optional<PixelFormat> ring_format(int av_pixel_format) {
    switch (without_j(av_pixel_format)) {
        case AV_PIX_FMT_YUV420P:
            return PixelFormat::yuv420p;
        case AV_PIX_FMT_NV12:
            return PixelFormat::nv12;
        case AV_PIX_FMT_YUYV422:
            return PixelFormat::yuyv;
        case AV_PIX_FMT_RGB24:
            return PixelFormat::rgb24;
        case AV_PIX_FMT_GRAY8:
            return PixelFormat::gray8;
        default:
            return std::nullopt;
    }
}

PixelFormat nearest_ring_format(int av_pixel_format) {
    if (const auto same = ring_format(av_pixel_format)) return *same;
    const AVPixFmtDescriptor* description = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(av_pixel_format));
    if (description == nullptr) return PixelFormat::yuv420p;
    if ((description->flags & (AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_BAYER)) != 0) {
        return PixelFormat::rgb24;
    }
    return description->nb_components <= 2 ? PixelFormat::gray8 : PixelFormat::yuv420p;
}

Layout upright_layout(const AVFrame& frame, int quarter_turns) {
    PixelFormat format = nearest_ring_format(frame.format);
    // Two pixels share a chroma sample only along a row: turned by 90 degrees there is no such thing.
    if (format == PixelFormat::yuyv && quarter_turns != 0) format = PixelFormat::yuv420p;
    const bool sideways = quarter_turns % 2 != 0;
    return packed_layout(format, sideways ? frame.height : frame.width, sideways ? frame.width : frame.height,
                         matrix_of(frame), range_of(frame));
}

ImageView Converter::scale(const AVFrame& frame, const Geometry& geometry, std::uint8_t* base) {
    const AVPixelFormat from = without_j(frame.format);
    scaler_.reset(sws_getCachedContext(scaler_.release(), frame.width, frame.height, from, frame.width, frame.height,
                                       av_format(geometry.format), SWS_BILINEAR | SWS_ACCURATE_RND, nullptr, nullptr,
                                       nullptr));
    const int* coefficients = sws_getCoefficients(swscale_matrix(geometry.matrix));
    const int full = geometry.range == ColorRange::full;
    if (!scaler_) {
        const char* format_name = av_get_pix_fmt_name(from);
        throw Error(Fault::task, "FFmpeg cannot convert pictures of the pixel format " +
                                     std::string(format_name != nullptr ? format_name : "unknown") + " (" +
                                     std::to_string(frame.width) + "x" + std::to_string(frame.height) +
                                     "). Re-encode the video as h264 in yuv420p.");
    }
    sws_setColorspaceDetails(scaler_.get(), coefficients, full, coefficients, full, 0, 1 << 16, 1 << 16);
    std::uint8_t* planes[4] = {};
    int strides[4] = {};
    for (int plane = 0; plane < plane_count(geometry.format); ++plane) {
        planes[plane] = base + geometry.offset[plane];
        strides[plane] = geometry.stride[plane];
    }
    if (sws_scale(scaler_.get(), frame.data, frame.linesize, 0, frame.height, planes, strides) != frame.height) {
        throw Error(Fault::task,
                    "FFmpeg failed to convert a picture of the stream. Re-encode the video as h264 in yuv420p.");
    }
    return compass_edge::view_of(geometry, base);
}

void Converter::convert(const AVFrame& frame, int quarter_turns, const Layout& layout, std::uint8_t* base) {
    const Geometry& geometry = layout.geometry;
    const bool same_format = ring_format(frame.format) == geometry.format;
    if (quarter_turns == 0) {
        if (same_format) {
            copy_planes(view_of(frame, geometry.format), geometry, base);
        } else {
            scale(frame, geometry, base);
        }
        return;
    }
    if (same_format) {
        rotate(view_of(frame, geometry.format), quarter_turns, geometry, base);
        return;
    }
    const Layout lying = packed_layout(geometry.format, frame.width, frame.height, geometry.matrix, geometry.range);
    if (upturned_.size() < lying.bytes) upturned_.resize(lying.bytes);
    rotate(scale(frame, lying.geometry, upturned_.data()), quarter_turns, geometry, base);
}

}  // namespace compass_edge
