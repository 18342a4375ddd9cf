// Converter: brings whatever FFmpeg decoded into a ring format, upright, in the caller's memory.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/av.hpp"
#include "runtime/frame.hpp"

namespace compass_edge {

// The ring format whose memory layout FFmpeg's format already has.
std::optional<PixelFormat> ring_format(int av_pixel_format);

// The ring format that keeps most of it: rgb24 for RGB, gray8 for gray, yuv420p for the rest.
PixelFormat nearest_ring_format(int av_pixel_format);

// The layout of the upright picture that `frame` becomes. A stream that does not name its matrix is taken as BT.601,
// as swscale, OpenCV and decord do: it is what the models saw in training.
Layout upright_layout(const AVFrame& frame, int quarter_turns);

// Not thread-safe. Allocates when the picture's format or size changes, otherwise not.
class Converter {
  public:
    // base [host, u8] of layout.bytes, layout = upright_layout(frame, quarter_turns)
    void convert(const AVFrame& frame, int quarter_turns, const Layout& layout, std::uint8_t* base);

  private:
    ImageView scale(const AVFrame& frame, const Geometry& geometry, std::uint8_t* base);

    av::Scaler scaler_;
    std::vector<std::uint8_t> upturned_;  // a converted picture that has yet to be rotated
};

}  // namespace compass_edge
