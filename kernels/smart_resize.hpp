// The size a Qwen-VL model wants a picture in: both sides a multiple of `factor`, the area within bounds.
//
// Equal to smart_resize of transformers' Qwen2-VL image processor, ties included: Python rounds half to even, so
// 1280x720 becomes 1280x704 at factor 32. std::round would give 1280x736, that is, another token grid.
#pragma once

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace compass_edge {

struct PictureSize {
    int width = 0;
    int height = 0;
};

constexpr int kLongestSide = 1 << 16;

// value / factor, rounded half to even.
constexpr int nearest_multiple(int value, int factor) {
    const int quotient = value / factor;
    const int twice_rest = 2 * (value % factor);
    const bool up = twice_rest > factor || (twice_rest == factor && quotient % 2 == 1);
    return (quotient + (up ? 1 : 0)) * factor;
}

inline PictureSize smart_resize(int width, int height, int factor, long min_pixels, long max_pixels) {
    const auto size = [](int w, int h) { return std::to_string(w) + "x" + std::to_string(h); };
    if (width < 1 || height < 1 || width > kLongestSide || height > kLongestSide) {
        throw std::invalid_argument("Expected a picture of 1 to " + std::to_string(kLongestSide) +
                                    " pixels a side, got " + size(width, height) + ". Check the frame's size.");
    }
    if (factor < 1 || factor > kLongestSide || max_pixels < 1) {
        throw std::invalid_argument("Expected a factor of 1 to " + std::to_string(kLongestSide) +
                                    " and max_pixels >= 1, got factor " + std::to_string(factor) + " and max_pixels " +
                                    std::to_string(max_pixels) + ". Check the model's preprocessor_config.json.");
    }
    const int longer = std::max(width, height), shorter = std::min(width, height);
    if (static_cast<long>(longer) > 200L * shorter) {
        throw std::invalid_argument("Expected an aspect ratio of at most 200, got " + size(width, height) +
                                    ". Crop the picture before it reaches the model.");
    }
    const double w = width, h = height, f = factor;
    int new_width = nearest_multiple(width, factor);
    int new_height = nearest_multiple(height, factor);
    const long area = static_cast<long>(new_width) * new_height;
    if (area > max_pixels) {
        const double beta = std::sqrt(w * h / static_cast<double>(max_pixels));
        new_height = std::max(factor, static_cast<int>(std::floor(h / beta / f)) * factor);
        new_width = std::max(factor, static_cast<int>(std::floor(w / beta / f)) * factor);
    } else if (area < min_pixels) {
        const double beta = std::sqrt(static_cast<double>(min_pixels) / (w * h));
        new_height = static_cast<int>(std::ceil(h * beta / f)) * factor;
        new_width = static_cast<int>(std::ceil(w * beta / f)) * factor;
    }
    if (new_width < 1 || new_height < 1) {
        throw std::invalid_argument("A picture of " + size(width, height) + " rounds to nothing at factor " +
                                    std::to_string(factor) + ". Raise min_pixels so that it is enlarged instead.");
    }
    return {new_width, new_height};
}

}  // namespace compass_edge
