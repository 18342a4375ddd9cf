// The oracle: every element looked up by its indices.
#include "kernels/patchify.hpp"

namespace compass_edge::scalar {
namespace {

template <class Element>
void patchify(const PatchBand& band, const Element (&values)[3][256], void* out) {
    const std::ptrdiff_t area = static_cast<std::ptrdiff_t>(band.patch) * band.patch;
    for (int patch = 0; patch < band.patches; ++patch) {
        const std::ptrdiff_t place = patch / band.merge * band.merge * band.merge + patch % band.merge;
        auto* element = static_cast<Element*>(out) + place * 3 * band.temporal * area;
        for (int channel = 0; channel < 3; ++channel) {
            for (int t = 0; t < band.temporal; ++t) {
                for (int y = 0; y < band.patch; ++y) {
                    const std::uint8_t* row =
                        band.pixels + y * band.row_stride + channel * band.plane_stride + patch * band.patch;
                    for (int x = 0; x < band.patch; ++x) *element++ = values[channel][row[x]];
                }
            }
        }
    }
}

void to_f32(const PatchBand& band, const Normaliser& n, void* out) { patchify(band, n.f32, out); }
void to_half(const PatchBand& band, const Normaliser& n, void* out) { patchify(band, n.half, out); }

}  // namespace

PatchifyBand band_patchifier(Dtype dtype) { return dtype == Dtype::f32 ? to_f32 : to_half; }

}  // namespace compass_edge::scalar
