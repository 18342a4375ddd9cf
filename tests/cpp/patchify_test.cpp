#include "kernels/patchify.hpp"

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/float16.hpp"
#include "tests/cpp/check.hpp"

using namespace compass_edge;

namespace {

using Floats = std::array<float, 3>;
constexpr Floats kHalf{0.5f, 0.5f, 0.5f};
constexpr Floats kClipMean{0.48145466f, 0.4578275f, 0.40821073f};
constexpr Floats kClipStd{0.26862954f, 0.26130258f, 0.27577711f};
constexpr Dtype kDtypes[] = {Dtype::f32, Dtype::f16, Dtype::bf16};

struct Picture {
    int patch, merge, temporal, patches;
    bool gray;
    std::ptrdiff_t plane_stride, row_stride;
    std::vector<std::uint8_t> pixels;

    Picture(int p, int m, int t, int n, bool g, std::mt19937& random)
        : patch(p),
          merge(m),
          temporal(t),
          patches(n),
          gray(g),
          plane_stride(p * n + 16),
          row_stride(plane_stride * (g ? 1 : 3)),
          pixels(static_cast<std::size_t>(row_stride) * p) {
        for (auto& pixel : pixels) pixel = static_cast<std::uint8_t>(random());
    }

    std::size_t columns() const { return static_cast<std::size_t>(3) * temporal * patch * patch; }
    int at(int channel, int y, int x) const {
        return pixels[static_cast<std::size_t>(y * row_stride + (gray ? 0 : channel) * plane_stride + x)];
    }
    // Room for a whole row of merge blocks, of which the band fills every merge-th row of patches.
    std::vector<std::uint8_t> run(Dtype dtype, const Normaliser& n, Isa isa, bool stream = false) const {
        const std::size_t size = columns() * patches * merge * bytes(dtype);
        std::vector<std::uint8_t> memory(size + 64, 0xab);
        const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
        std::uint8_t* out = memory.data() + (64 - address % 64) % 64;
        const PatchBand band{pixels.data(), row_stride, gray ? 0 : plane_stride, patch, merge, temporal,
                             patches,       stream};
        band_patchifier(dtype, n.form, patch, isa)(band, n, out);
        return {out, out + size};
    }
};

}  // namespace

TEST(halves_round_to_nearest_even) {
    CHECK_EQ(to_f16(1.0f), 0x3c00);
    CHECK_EQ(to_f16(-2.0f), 0xc000);
    CHECK_EQ(to_f16(1.0f + 0x1p-11f), 0x3c00);      // a tie, down to even
    CHECK_EQ(to_f16(1.0f + 3 * 0x1p-11f), 0x3c02);  // a tie, up to even
    CHECK_EQ(to_f16(1.0f + 0x1p-11f + 0x1p-20f), 0x3c01);
    CHECK_EQ(to_f16(2.0f - 0x1p-12f), 0x4000);  // carries into the exponent
    CHECK_EQ(to_f16(65504.0f), 0x7bff);
    CHECK_EQ(to_f16(65519.0f), 0x7bff);
    CHECK_EQ(to_f16(65520.0f), 0x7c00);
    CHECK_EQ(to_f16(INFINITY), 0x7c00);
    CHECK_EQ(to_f16(0x1p-14f), 0x0400);
    CHECK_EQ(to_f16(0x1p-14f - 0x1p-25f), 0x0400);  // the largest subnormal's upper neighbour is a tie
    CHECK_EQ(to_f16(0x1p-24f), 0x0001);
    CHECK_EQ(to_f16(0x1p-25f), 0x0000);
    CHECK_EQ(to_f16(1.5f * 0x1p-25f), 0x0001);
    CHECK_EQ(to_f16(-0.0f), 0x8000);
    CHECK_EQ(to_bf16(1.0f), 0x3f80);
    CHECK_EQ(to_bf16(1.0f + 0x1p-8f), 0x3f80);
    CHECK_EQ(to_bf16(1.0f + 3 * 0x1p-8f), 0x3f82);
    CHECK_EQ(to_bf16(INFINITY), 0x7f80);
}

TEST(a_normaliser_holds_the_reference_division) {
    for (const auto& [mean, std] : {std::pair(kHalf, kHalf), std::pair(kClipMean, kClipStd)}) {
        const Normaliser n = make_normaliser(mean, std, Dtype::f16);
        for (int c = 0; c < 3; ++c) {
            for (int level = 0; level < 256; ++level) {
                const float value = (static_cast<float>(level) - mean[c] * 255.0f) / (std[c] * 255.0f);
                CHECK(n.f32[c][level] == value);
                CHECK_EQ(n.half[c][level], to_f16(value));
            }
        }
    }
}

TEST(a_fast_form_is_found_for_the_models_and_refused_where_it_would_round_differently) {
    for (const Dtype dtype : kDtypes) {
        CHECK(make_normaliser(kHalf, kHalf, dtype).form != NormaliseForm::table);
        CHECK(make_normaliser(kClipMean, kClipStd, dtype).form != NormaliseForm::table);
    }
    // Quotients overflow: the refinement would make them NaN.
    CHECK(make_normaliser(kHalf, {1e-40f, 1e-40f, 1e-40f}, Dtype::f32).form == NormaliseForm::table);
    CHECK_THROWS(make_normaliser(kHalf, {0.5f, 0.0f, 0.5f}, Dtype::f32), "above zero");
    CHECK_THROWS(make_normaliser({0.5f, NAN, 0.5f}, kHalf, Dtype::f32), "for channel 1");
}

TEST(patches_lie_in_merge_block_order) {
    std::mt19937 random(5);
    const Picture picture(16, 2, 2, 6, false, random);
    const Normaliser n = make_normaliser(kClipMean, kClipStd, Dtype::f32);
    for (const Isa isa : available_isas()) {
        const auto out = picture.run(Dtype::f32, n, isa);
        std::size_t element = 0;
        for (int block = 0; block < 3; ++block) {
            for (int merge_y = 0; merge_y < 2; ++merge_y) {
                for (int merge_x = 0; merge_x < 2; ++merge_x) {
                    for (int c = 0; c < 3; ++c) {
                        for (int t = 0; t < 2; ++t) {
                            for (int y = 0; y < 16; ++y) {
                                for (int x = 0; x < 16; ++x, element += 4) {
                                    if (merge_y > 0) continue;  // the next band's
                                    float value;
                                    std::memcpy(&value, &out[element], 4);
                                    CHECK(value == n.f32[c][picture.at(c, y, (2 * block + merge_x) * 16 + x)]);
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

TEST(every_instruction_set_gives_the_scalar_bits) {
    std::mt19937 random(6);
    const Floats tiny{1e-40f, 1e-40f, 1e-40f};
    for (const int patch : {16, 14, 1, 3, 7, 17, 32, 64, 65}) {
        for (const int merge : {1, 2, 3}) {
            for (const int temporal : {1, 2, 3}) {
                const Picture picture(patch, merge, temporal, merge * (1 + merge % 2), temporal == 3, random);
                for (const Dtype dtype : kDtypes) {
                    for (const auto& [mean, std] :
                         {std::pair(kHalf, kHalf), std::pair(kClipMean, kClipStd), std::pair(kHalf, tiny)}) {
                        const Normaliser n = make_normaliser(mean, std, dtype);
                        const auto expected = picture.run(dtype, n, Isa::scalar);
                        for (const Isa isa : available_isas()) {
                            CHECK(picture.run(dtype, n, isa) == expected);
                            CHECK(picture.run(dtype, n, isa, true) == expected);
                        }
                    }
                }
            }
        }
    }
}

int main(int argc, char** argv) { return check::run(argc, argv); }
