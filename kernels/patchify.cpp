#include "kernels/patchify.hpp"

#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include "kernels/float16.hpp"

namespace compass_edge {
namespace {

float evaluate(const Normaliser& n, int channel, int level) {
    const auto value = static_cast<float>(level);
    if (n.form == NormaliseForm::affine) return std::fma(value, n.scale[channel], n.offset[channel]);
    const float difference = value - n.mean[channel];
    const float quotient = difference * n.inverse[channel];
    const float rest = std::fma(-quotient, n.std[channel], difference);
    return std::fma(rest, n.inverse[channel], quotient);
}

std::uint16_t to_half(float value, Dtype dtype) { return dtype == Dtype::f16 ? to_f16(value) : to_bf16(value); }

bool exact(const Normaliser& n, Dtype dtype) {
    for (int channel = 0; channel < 3; ++channel) {
        for (int level = 0; level < 256; ++level) {
            const float value = evaluate(n, channel, level);
            const bool same = dtype == Dtype::f32 ? float_bits(value) == float_bits(n.f32[channel][level])
                                                  : to_half(value, dtype) == n.half[channel][level];
            if (!same) return false;
        }
    }
    return true;
}

}  // namespace

Normaliser make_normaliser(const std::array<float, 3>& mean, const std::array<float, 3>& std, Dtype dtype) {
    Normaliser n{};
    for (int channel = 0; channel < 3; ++channel) {
        if (!std::isfinite(mean[channel]) || !std::isfinite(std[channel]) || !(std[channel] > 0.0f)) {
            throw std::invalid_argument("Expected finite means and standard deviations above zero, got mean " +
                                        std::to_string(mean[channel]) + " and std " + std::to_string(std[channel]) +
                                        " for channel " + std::to_string(channel) +
                                        ". Take them from the model's preprocessor_config.json.");
        }
        n.mean[channel] = mean[channel] * 255.0f;
        n.std[channel] = std[channel] * 255.0f;
        n.inverse[channel] = 1.0f / n.std[channel];
        n.scale[channel] = n.inverse[channel];
        n.offset[channel] = static_cast<float>(-static_cast<double>(n.mean[channel]) / n.std[channel]);
        for (int level = 0; level < 256; ++level) {
            const float value = (static_cast<float>(level) - n.mean[channel]) / n.std[channel];
            n.f32[channel][level] = value;
            n.half[channel][level] = to_half(value, dtype);
        }
    }
    for (const NormaliseForm form : {NormaliseForm::affine, NormaliseForm::refined}) {
        n.form = form;
        if (exact(n, dtype)) return n;
    }
    n.form = NormaliseForm::table;
    return n;
}

PatchifyBand band_patchifier(Dtype dtype, NormaliseForm form, int patch, Isa isa) {
    if (form == NormaliseForm::table) return scalar::band_patchifier(dtype);
    switch (isa) {
#if defined(__x86_64__)
        case Isa::avx2:
            return avx2::band_patchifier(dtype, form, patch);
        case Isa::avx512:
            return avx512::band_patchifier(dtype, form, patch);
#elif defined(__aarch64__)
        case Isa::neon:
            return neon::band_patchifier(dtype, form, patch);
#endif
        default:
            return scalar::band_patchifier(dtype);
    }
}

}  // namespace compass_edge
