// Patchify, a row of a patch at a time; each value is computed once and stored once a temporal slot.
#include "kernels/patchify.hpp"
#include "kernels/simd.hpp"

namespace compass_edge::COMPASS_EDGE_ISA {
namespace {

constexpr int kLargestStaged = 64;  // patch sizes up to this are gathered on the stack

template <NormaliseForm Form>
struct Channel {
    F32 scale, offset, mean, std, inverse;

    Channel(const Normaliser& n, int c)
        : scale(splat(n.scale[c])),
          offset(splat(n.offset[c])),
          mean(splat(n.mean[c])),
          std(splat(n.std[c])),
          inverse(splat(n.inverse[c])) {}

    F32 operator()(F32 level) const {
        if constexpr (Form == NormaliseForm::affine) {
            return multiply_add(level, scale, offset);
        } else {
            const F32 difference = subtract(level, mean);
            const F32 quotient = multiply(difference, inverse);
            return multiply_add(negative_multiply_add(quotient, std, difference), inverse, quotient);
        }
    }
};

struct ToF32 {
    using Element = float;
    static auto convert(F32 v) { return as_f32(v); }
};
struct ToF16 {
    using Element = std::uint16_t;
    static auto convert(F32 v) { return as_f16(v); }
};
struct ToBf16 {
    using Element = std::uint16_t;
    static auto convert(F32 v) { return as_bf16(v); }
};

// count pixels in a row to `temporal` places, `apart` elements from one another.
template <class To, bool Stream, class Normalise>
inline void write(const std::uint8_t* pixels, int count, const Normalise& normalise, typename To::Element* out,
                  int temporal, std::ptrdiff_t apart) {
    for (int x = 0; x < count; x += kFloats) {
        const auto value = To::convert(normalise(load_floats(pixels + x)));
        for (int t = 0; t < temporal; ++t) {
            if constexpr (Stream) {
                stream(out + t * apart + x, value);
            } else {
                store(out + t * apart + x, value);
            }
        }
    }
}

template <class To, NormaliseForm Form, bool Stream>
inline void patch16(const PatchBand& band, const std::uint8_t* pixels, const Normaliser& n, typename To::Element* out) {
    for (int c = 0; c < 3; ++c) {
        const Channel<Form> normalise(n, c);
        const std::uint8_t* row = pixels + c * band.plane_stride;
        auto* to = out + c * band.temporal * 256;
        for (int y = 0; y < 16; ++y, row += band.row_stride, to += 16) {
            // The usual two temporal slots, known to the compiler.
            if (band.temporal == 2) {
                write<To, Stream>(row, 16, normalise, to, 2, 256);
            } else {
                write<To, Stream>(row, 16, normalise, to, band.temporal, 256);
            }
        }
    }
}

// Any other size: gather the patch's rows side by side, then convert them as one row.
template <class To, NormaliseForm Form>
inline void patch_any(const PatchBand& band, const std::uint8_t* pixels, const Normaliser& n,
                      typename To::Element* out) {
    const int area = band.patch * band.patch, whole = area / kFloats * kFloats;
    std::uint8_t staged[kLargestStaged * kLargestStaged + kFloats];
    std::memset(staged + area, 0, kFloats);
    for (int c = 0; c < 3; ++c) {
        const Channel<Form> normalise(n, c);
        for (int y = 0; y < band.patch; ++y) {
            std::memcpy(staged + y * band.patch, pixels + y * band.row_stride + c * band.plane_stride,
                        static_cast<std::size_t>(band.patch));
        }
        auto* to = out + static_cast<std::ptrdiff_t>(c) * band.temporal * area;
        write<To, false>(staged, whole, normalise, to, band.temporal, area);
        if (whole == area) continue;
        typename To::Element rest[kFloats];
        store(rest, To::convert(normalise(load_floats(staged + whole))));
        for (int t = 0; t < band.temporal; ++t) {
            std::memcpy(to + static_cast<std::ptrdiff_t>(t) * area + whole, rest,
                        static_cast<std::size_t>(area - whole) * sizeof rest[0]);
        }
    }
}

template <class To, NormaliseForm Form, bool Sixteen>
void patchify(const PatchBand& band, const Normaliser& n, void* out) {
    const std::ptrdiff_t columns = static_cast<std::ptrdiff_t>(3) * band.temporal * band.patch * band.patch;
    for (int patch = 0; patch < band.patches; ++patch) {
        const std::ptrdiff_t place = patch / band.merge * band.merge * band.merge + patch % band.merge;
        auto* to = static_cast<typename To::Element*>(out) + place * columns;
        const std::uint8_t* pixels = band.pixels + static_cast<std::ptrdiff_t>(patch) * band.patch;
        if constexpr (!Sixteen) {
            patch_any<To, Form>(band, pixels, n, to);
        } else if (band.stream) {
            patch16<To, Form, true>(band, pixels, n, to);
        } else {
            patch16<To, Form, false>(band, pixels, n, to);
        }
    }
    if (Sixteen && band.stream) flush_stream();
}

template <class To>
PatchifyBand choose(NormaliseForm form, int patch) {
    if (form == NormaliseForm::affine) {
        return patch == 16 ? patchify<To, NormaliseForm::affine, true> : patchify<To, NormaliseForm::affine, false>;
    }
    return patch == 16 ? patchify<To, NormaliseForm::refined, true> : patchify<To, NormaliseForm::refined, false>;
}

}  // namespace

PatchifyBand band_patchifier(Dtype dtype, NormaliseForm form, int patch) {
    if (patch > kLargestStaged) return scalar::band_patchifier(dtype);
    switch (dtype) {
        case Dtype::f32:
            return choose<ToF32>(form, patch);
        case Dtype::f16:
            return choose<ToF16>(form, patch);
        case Dtype::bf16:
            return choose<ToBf16>(form, patch);
    }
    return nullptr;
}

}  // namespace compass_edge::COMPASS_EDGE_ISA
