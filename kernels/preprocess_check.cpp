#include "kernels/preprocess_check.hpp"

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace compass_edge {
namespace {

[[noreturn]] void refuse(const std::string& sentence) { throw std::invalid_argument(sentence); }

void check_range(const char* what, int value, int largest) {
    if (value >= 1 && value <= largest) return;
    refuse("Expected " + std::string(what) + " of 1 to " + std::to_string(largest) + ", got " + std::to_string(value) +
           ". Take it from the model's preprocessor_config.json.");
}

// Sentences are built only when they are needed: a run that passes its checks allocates nothing.
std::string describe(const ImageView& image) {
    return std::string(name(image.format)) + " picture of " + std::to_string(image.width) + "x" +
           std::to_string(image.height);
}

}  // namespace

void check_spec(const PatchSpec& spec) {
    check_range("a patch size", spec.patch, 256);
    check_range("a merge size", spec.merge, 16);
    check_range("a temporal patch size", spec.temporal, 16);
}

void check_image(const ImageView& image) {
    if (image.width < 1 || image.height < 1) refuse("Expected a picture with pixels, got a " + describe(image) + ".");
    for (int plane = 0; plane < plane_count(image.format); ++plane) {
        if (image.data[plane] == nullptr) {
            refuse("A " + describe(image) + " has " + std::to_string(plane_count(image.format)) +
                   " planes, but plane " + std::to_string(plane) +
                   " is null. Set its address, or the format the picture really has.");
        }
        const PlaneExtent extent = plane_extent(image.format, plane, image.width, image.height);
        // A negative stride is a picture stored bottom up.
        if (extent.rows > 1 && std::abs(image.stride[plane]) < extent.row_bytes) {
            refuse("Expected a stride of at least " + std::to_string(extent.row_bytes) + " bytes for plane " +
                   std::to_string(plane) + " of a " + describe(image) + ", got " + std::to_string(image.stride[plane]) +
                   ". A stride is counted in bytes.");
        }
    }
}

void check_out(const void* out, std::size_t out_bytes, const PatchGrid& grid, const PatchSpec& spec, Dtype dtype) {
    const std::size_t needed = static_cast<std::size_t>(grid.height) * grid.width * spec.columns() * bytes(dtype);
    if (out == nullptr || out_bytes < needed) {
        const std::string shape = std::to_string(grid.height) + " * " + std::to_string(grid.width) + " patches of " +
                                  std::to_string(spec.columns()) + " " + std::string(name(dtype)) + " values";
        refuse("Expected an output buffer of at least " + std::to_string(needed) + " bytes (" + shape + "), got " +
               (out == nullptr ? "no buffer" : std::to_string(out_bytes)) + ". Size it with grid() and columns().");
    }
    if (reinterpret_cast<std::uintptr_t>(out) % bytes(dtype) != 0) {
        refuse("Expected an output buffer aligned to its " + std::to_string(bytes(dtype)) + "-byte elements. " +
               "Allocate it as an array of " + std::string(name(dtype)) + ".");
    }
}

}  // namespace compass_edge
