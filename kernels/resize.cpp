#include "kernels/resize.hpp"

#include <algorithm>
#include <cmath>

namespace compass_edge {
namespace {

// Keys' cubic with a = -0.5 (Pillow's and torch's antialiased choice; OpenCV and torch without antialias use -0.75).
double cubic(double x) {
    constexpr double a = -0.5;
    x = std::abs(x);
    if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    if (x < 2.0) return ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a;
    return 0.0;
}

// The most fraction bits with which the largest weight still fits 16 bits.
int weight_precision(double largest) {
    int precision = 0;
    while (precision < 22 && static_cast<int>(0.5 + largest * (1 << (precision + 1))) < (1 << 15)) ++precision;
    return precision;
}

constexpr int kBlock = 16, kGroup = 4, kWindow = 16;

}  // namespace

ResizeAxis::ResizeAxis(int in, int out) : in_(in), out_(out) {
    const double scale = static_cast<double>(in) / out;
    const double support = scale >= 1.0 ? 2.0 * scale : 2.0;
    const double inverse = scale >= 1.0 ? 1.0 / scale : 1.0;
    taps_ = static_cast<int>(std::ceil(support)) * 2 + 1;
    std::vector<double> exact(static_cast<std::size_t>(out) * taps_);
    double largest = 0.0;
    int widest = 1;
    for (int i = 0; i < out; ++i) {
        const double center = scale * (i + 0.5);
        const int start = std::max(static_cast<int>(center - support + 0.5), 0);
        const int count = std::clamp(std::min(static_cast<int>(center + support + 0.5), in) - start, 0, taps_);
        double* weights = &exact[static_cast<std::size_t>(i) * taps_];
        double total = 0.0;
        for (int j = 0; j < count; ++j) total += weights[j] = cubic((j + start - center + 0.5) * inverse);
        for (int j = 0; j < count; ++j) largest = std::max(largest, weights[j] /= total);
        start_.push_back(start);
        count_.push_back(count);
        widest = std::max(widest, count);
    }
    precision_ = weight_precision(largest);
    weights_.assign(static_cast<std::size_t>(out) * widest, 0);
    for (int i = 0; i < out; ++i) {
        for (int j = 0; j < count_[i]; ++j) {
            const double value = exact[static_cast<std::size_t>(i) * taps_ + j] * (1 << precision_);
            weights_[static_cast<std::size_t>(i) * widest + j] =
                static_cast<std::int16_t>(static_cast<int>(value < 0 ? value - 0.5 : value + 0.5));
        }
    }
    taps_ = widest;
    build_blocks();
}

void ResizeAxis::build_blocks() {
    const int blocks = (out_ + kBlock - 1) / kBlock;
    const int pairs = (taps_ + 1) / 2;
    const auto clamped = [&](int i) { return std::min(i, out_ - 1); };
    int span = 0;
    for (int group = 0; group < blocks * kGroup; ++group) {
        const int first = start_[clamped(group * kGroup)];
        const int last = start_[clamped(group * kGroup + kGroup - 1)];
        span = std::max(span, last - first);
        if (span + 2 > kWindow) {
            window_.clear();
            shuffle_.clear();
            return;
        }
        window_.push_back(first);
        for (int i = 0; i < kGroup; ++i) {
            const auto at = static_cast<std::uint8_t>(start_[clamped(group * kGroup + i)] - first);
            // 0x80 writes a zero: the upper byte of a 16-bit lane.
            shuffle_.insert(shuffle_.end(), {at, 0x80, static_cast<std::uint8_t>(at + 1), 0x80});
        }
    }
    pairs_a_window_ = std::min((kWindow - span) / 2, pairs);
    block_weights_.reserve(static_cast<std::size_t>(blocks) * pairs * kBlock * 2);
    for (int block = 0; block < blocks; ++block) {
        for (int pair = 0; pair < pairs; ++pair) {
            for (int i = 0; i < kBlock; ++i) {
                const int output = clamped(block * kBlock + i);
                const std::int16_t* weights = &weights_[static_cast<std::size_t>(output) * taps_];
                block_weights_.push_back(weights[2 * pair]);
                block_weights_.push_back(2 * pair + 1 < taps_ ? weights[2 * pair + 1] : std::int16_t{0});
            }
        }
    }
}

AxisView ResizeAxis::view() const {
    const bool blocked = !window_.empty();
    return {in_,
            out_,
            taps_,
            precision_,
            start_.data(),
            count_.data(),
            weights_.data(),
            (out_ + kBlock - 1) / kBlock,
            (taps_ + 1) / 2,
            pairs_a_window_,
            blocked ? window_.data() : nullptr,
            blocked ? shuffle_.data() : nullptr,
            blocked ? block_weights_.data() : nullptr};
}

HorizontalPass horizontal_pass(Isa isa) {
    switch (isa) {
#if defined(__x86_64__)
        case Isa::avx2:
            return avx2::horizontal_pass();
        case Isa::avx512:
            return avx512::horizontal_pass();
#elif defined(__aarch64__)
        case Isa::neon:
            return neon::horizontal_pass();
#endif
        default:
            return scalar::horizontal_pass();
    }
}

VerticalPass vertical_pass(Isa isa) {
    switch (isa) {
#if defined(__x86_64__)
        case Isa::avx2:
            return avx2::vertical_pass();
        case Isa::avx512:
            return avx512::vertical_pass();
#elif defined(__aarch64__)
        case Isa::neon:
            return neon::vertical_pass();
#endif
        default:
            return scalar::vertical_pass();
    }
}

}  // namespace compass_edge
