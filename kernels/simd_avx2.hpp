// AVX2, FMA and F16C. See simd.hpp; the same names exist for every instruction set.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace compass_edge::avx2 {
namespace {

constexpr int kBytes = 32;  // of a vector
constexpr int kFloats = 8;  // f32 lanes
using U8 = __m256i;
using I16 = __m256i;
using F32 = __m256;

inline U8 load(const std::uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
inline void store(std::uint8_t* p, U8 v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
inline __m128i load16(const std::uint8_t* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }

// Two 128-bit loads in one register.
inline __m256i load_lanes(const std::uint8_t* low, const std::uint8_t* high) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load16(low)), load16(high), 1);
}
inline __m256i repeat16(const std::int8_t (&bytes)[16]) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)));
}

// 16-bit lanes. high_*: a byte in the upper half of its lane.
inline I16 splat(std::int16_t v) { return _mm256_set1_epi16(v); }
inline I16 high_even(U8 v) { return _mm256_slli_epi16(v, 8); }
inline I16 high_odd(U8 v) { return _mm256_and_si256(v, _mm256_set1_epi16(static_cast<std::int16_t>(0xff00))); }
inline I16 high_each(const std::uint8_t* p) { return _mm256_slli_epi16(_mm256_cvtepu8_epi16(load16(p)), 8); }
inline I16 halve(I16 v) { return _mm256_srli_epi16(v, 1); }
inline I16 flip_sign(I16 v) { return _mm256_xor_si256(v, _mm256_set1_epi16(INT16_MIN)); }
inline I16 rounded_product(I16 a, I16 b) { return _mm256_mulhrs_epi16(a, b); }
inline I16 add(I16 a, I16 b) { return _mm256_adds_epi16(a, b); }

// >> 6, clamped to a byte, even and odd lanes interleaved.
inline U8 pack_levels(I16 even, I16 odd) {
    const __m256i packed = _mm256_packus_epi16(_mm256_srai_epi16(even, 6), _mm256_srai_epi16(odd, 6));
    return _mm256_shuffle_epi8(packed, repeat16({0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15}));
}

// 3 * kBytes interleaved bytes. Each lane holds bytes of three loads at distinct places modulo 3, hence blend, then
// sort.
inline void split3(const std::uint8_t* p, U8& r, U8& g, U8& b) {
    const __m256i v0 = load_lanes(p, p + 48), v1 = load_lanes(p + 16, p + 64), v2 = load_lanes(p + 32, p + 80);
    const __m256i m1 = repeat16({0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0});
    const __m256i m2 = repeat16({0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0});
    const auto merge = [&](__m256i at0, __m256i at1, __m256i at2) {
        return _mm256_blendv_epi8(_mm256_blendv_epi8(at0, at1, m1), at2, m2);
    };
    r = _mm256_shuffle_epi8(merge(v0, v2, v1), repeat16({0, 3, 6, 9, 12, 15, 2, 5, 8, 11, 14, 1, 4, 7, 10, 13}));
    g = _mm256_shuffle_epi8(merge(v1, v0, v2), repeat16({1, 4, 7, 10, 13, 0, 3, 6, 9, 12, 15, 2, 5, 8, 11, 14}));
    b = _mm256_shuffle_epi8(merge(v2, v1, v0), repeat16({2, 5, 8, 11, 14, 1, 4, 7, 10, 13, 0, 3, 6, 9, 12, 15}));
}

// 2 * kBytes of Y0 U Y1 V to kBytes of luma and kBytes of U V pairs.
inline void split_yuyv(const std::uint8_t* p, U8& y, U8& uv) {
    const __m256i a = load(p), b = load(p + 32), low = _mm256_set1_epi16(0x00ff);
    const __m256i even = _mm256_packus_epi16(_mm256_and_si256(a, low), _mm256_and_si256(b, low));
    const __m256i odd = _mm256_packus_epi16(_mm256_srli_epi16(a, 8), _mm256_srli_epi16(b, 8));
    y = _mm256_permute4x64_epi64(even, 0xd8);
    uv = _mm256_permute4x64_epi64(odd, 0xd8);
}

// Weighted sums of kBytes pixels in 32 bits.
struct Sums {
    __m256i part[4];
};
inline __m256i pair_weights(const std::int16_t* two) {
    std::int32_t both;
    std::memcpy(&both, two, sizeof both);
    return _mm256_set1_epi32(both);
}
inline Sums start_sums(std::int32_t v) {
    const __m256i all = _mm256_set1_epi32(v);
    return {{all, all, all, all}};
}
// sums += a * weights[0] + b * weights[1]
inline void accumulate(Sums& sums, U8 a, U8 b, __m256i weights) {
    const __m256i zero = _mm256_setzero_si256();
    const __m256i low = _mm256_unpacklo_epi8(a, b), high = _mm256_unpackhi_epi8(a, b);
    const auto madd = [&](__m256i sum, __m256i pixels) {
        return _mm256_add_epi32(sum, _mm256_madd_epi16(pixels, weights));
    };
    sums.part[0] = madd(sums.part[0], _mm256_unpacklo_epi8(low, zero));
    sums.part[1] = madd(sums.part[1], _mm256_unpackhi_epi8(low, zero));
    sums.part[2] = madd(sums.part[2], _mm256_unpacklo_epi8(high, zero));
    sums.part[3] = madd(sums.part[3], _mm256_unpackhi_epi8(high, zero));
}
inline U8 narrow(const Sums& sums, int shift) {
    const __m128i count = _mm_cvtsi32_si128(shift);
    const auto sra = [&](__m256i v) { return _mm256_sra_epi32(v, count); };
    return _mm256_packus_epi16(_mm256_packs_epi32(sra(sums.part[0]), sra(sums.part[1])),
                               _mm256_packs_epi32(sra(sums.part[2]), sra(sums.part[3])));
}

// kFloats neighbouring outputs of the horizontal pass, in groups of four that each read one 16-byte window.
inline __m256i load_windows(const std::uint8_t* src, const std::int32_t* window) {
    return load_lanes(src + window[0], src + window[1]);
}
inline __m256i start_sum(std::int32_t v) { return _mm256_set1_epi32(v); }
inline I16 load_weights(const std::int16_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
inline __m256i accumulate(__m256i sum, U8 windows, U8 shuffle, I16 weights) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_shuffle_epi8(windows, shuffle), weights));
}
// The shuffle of the next two inputs. The zero-writing 0x80 stays above 0x7f.
inline U8 advance(U8 shuffle) { return _mm256_add_epi8(shuffle, _mm256_set1_epi8(2)); }
inline void store_pixels(std::uint8_t* out, __m256i sum, int shift) {
    const __m256i levels = _mm256_sra_epi32(sum, _mm_cvtsi32_si128(shift));
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(levels), _mm256_extracti128_si256(levels, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out), _mm_packus_epi16(words, words));
}

// f32 lanes.
inline F32 splat(float v) { return _mm256_set1_ps(v); }
inline F32 load_floats(const std::uint8_t* p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}
inline F32 subtract(F32 a, F32 b) { return _mm256_sub_ps(a, b); }
inline F32 multiply(F32 a, F32 b) { return _mm256_mul_ps(a, b); }
inline F32 multiply_add(F32 a, F32 b, F32 c) { return _mm256_fmadd_ps(a, b, c); }
inline F32 negative_multiply_add(F32 a, F32 b, F32 c) { return _mm256_fnmadd_ps(a, b, c); }

inline __m256 as_f32(F32 v) { return v; }
inline __m128i as_f16(F32 v) { return _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT); }
inline __m128i as_bf16(F32 v) {
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i words = _mm256_srli_epi32(rounded, 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}
inline void store(float* p, __m256 v) { _mm256_storeu_ps(p, v); }
inline void store(std::uint16_t* p, __m128i v) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), v); }
// Past the caches; p is aligned to the vector. Ordered with later stores only by flush_stream.
inline void stream(float* p, __m256 v) { _mm256_stream_ps(p, v); }
inline void stream(std::uint16_t* p, __m128i v) { _mm_stream_si128(reinterpret_cast<__m128i*>(p), v); }
inline void flush_stream() { _mm_sfence(); }

}  // namespace
}  // namespace compass_edge::avx2
