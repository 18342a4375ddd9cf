// Patchify: normalise 8-bit pixels and write one row of patches in the order a Qwen-VL vision tower reads.
//
// pixels [host, u8] [patch rows, planes, plane_stride]    16 readable bytes follow each plane's last pixel
// out    [host, dtype] [patches, 3, temporal, patch, patch], patches of a merge block side by side
//
// The value of a level is (level - mean * 255) / (std * 255) in f32, rounded once to the dtype: what transformers'
// fused rescale and normalise computes. There are only 256 levels a channel, so a Normaliser proves its faster form on
// all of them when it is built.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/dtype.hpp"
#include "kernels/isa.hpp"

namespace compass_edge {

// How a kernel gets from a level to its value. Each is chosen only if it gives the table's bits for all 768 inputs.
//   affine   fma(level, scale, offset)
//   refined  q = (level - mean) * inverse;  fma(fma(-q, std, level - mean), inverse, q): a division without dividing
//   table    a lookup
enum class NormaliseForm : std::uint8_t { affine, refined, table };

// A plain struct: it crosses into the code of every instruction set.
struct Normaliser {
    NormaliseForm form;
    float mean[3], std[3];  // times 255
    float inverse[3];       // 1 / std
    float scale[3], offset[3];
    float f32[3][256];           // the values
    std::uint16_t half[3][256];  // and their bits in f16 or bf16
};

// Throws when a mean is not finite or a std not a positive number.
Normaliser make_normaliser(const std::array<float, 3>& mean, const std::array<float, 3>& std, Dtype dtype);

// One row of patches. out of PatchifyBand points at the first of them; the next merge block is merge * merge patches
// on.
struct PatchBand {
    const std::uint8_t* pixels;
    std::ptrdiff_t row_stride;
    std::ptrdiff_t plane_stride;  // 0 when the three channels are one
    int patch, merge, temporal;
    int patches;
    bool stream;  // write past the caches; out must then be aligned to 64 bytes. Only patches of 16 do.
};

using PatchifyBand = void (*)(const PatchBand& band, const Normaliser& normaliser, void* out);

PatchifyBand band_patchifier(Dtype dtype, NormaliseForm form, int patch, Isa isa);

namespace scalar {
PatchifyBand band_patchifier(Dtype dtype);
}
namespace avx2 {
PatchifyBand band_patchifier(Dtype dtype, NormaliseForm form, int patch);
}
namespace avx512 {
PatchifyBand band_patchifier(Dtype dtype, NormaliseForm form, int patch);
}
namespace neon {
PatchifyBand band_patchifier(Dtype dtype, NormaliseForm form, int patch);
}

}  // namespace compass_edge
