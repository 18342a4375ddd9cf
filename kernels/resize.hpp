// Resize: antialiased bicubic (a = -0.5) on 8-bit pixels, one axis at a time.
//
// The weights, their precision and the rounding are those of torch.nn.functional.interpolate on uint8 with
// mode='bicubic' and antialias=True, which are Pillow's with 16-bit weights.
//
// horizontal  in  [host, u8] [planes, in_stride]     kRowAlignment readable bytes follow each plane's last pixel
//             out [host, u8] [planes, out_stride]    room for the width rounded up to kRowAlignment
// vertical    rows [host, u8*] [count] of [bytes]    bytes is a multiple of kRowAlignment
//             out  [host, u8] [bytes]
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/color.hpp"
#include "kernels/isa.hpp"

namespace compass_edge {

// One axis as the kernels see it. A plain struct: it crosses into the code of every instruction set.
struct AxisView {
    int in, out;
    int taps;                     // of the widest output
    int precision;                // a weight of one is 1 << precision
    const std::int32_t* start;    // [out] first input
    const std::int32_t* count;    // [out] inputs used
    const std::int16_t* weights;  // [out, taps], zero past count
    // The same for blocks of 16 outputs in four groups of four. A group reads one 16-byte window, which `shuffle`
    // spreads to two neighbouring inputs an output; adding 2 to it reaches the next two, until the window is used up
    // and is moved. Null when four outputs span more than a window.
    int blocks, pairs, pairs_a_window;
    const std::int32_t* window;         // [blocks, 4]
    const std::uint8_t* shuffle;        // [blocks, 64]
    const std::int16_t* block_weights;  // [blocks, pairs, 16, 2]
};

// One axis of a resize: what an output is made of. Immutable once built; may be shared between threads.
class ResizeAxis {
  public:
    ResizeAxis() = default;
    ResizeAxis(int in, int out);

    // Nothing to do: the pass is skipped.
    bool identity() const { return in_ == out_; }
    AxisView view() const;

  private:
    void build_blocks();

    int in_ = 0, out_ = 0, taps_ = 0, precision_ = 0, pairs_a_window_ = 0;
    std::vector<std::int32_t> start_, count_, window_;
    std::vector<std::int16_t> weights_, block_weights_;
    std::vector<std::uint8_t> shuffle_;
};

using HorizontalPass = void (*)(const std::uint8_t* in, std::ptrdiff_t in_stride, int planes, const AxisView& axis,
                                std::uint8_t* out, std::ptrdiff_t out_stride);
using VerticalPass = void (*)(const std::uint8_t* const* rows, const std::int16_t* weights, int count, int precision,
                              int bytes, std::uint8_t* out);

HorizontalPass horizontal_pass(Isa isa);
VerticalPass vertical_pass(Isa isa);

namespace scalar {
HorizontalPass horizontal_pass();
VerticalPass vertical_pass();
}  // namespace scalar
namespace avx2 {
HorizontalPass horizontal_pass();
VerticalPass vertical_pass();
}  // namespace avx2
namespace avx512 {
HorizontalPass horizontal_pass();
VerticalPass vertical_pass();
}  // namespace avx512
namespace neon {
HorizontalPass horizontal_pass();
VerticalPass vertical_pass();
}  // namespace neon

}  // namespace compass_edge
