// What a Preprocessor refuses, on either device: each check is a sentence that says what to do.
#pragma once

#include <cstddef>

#include "kernels/image.hpp"
#include "kernels/preprocess.hpp"

namespace compass_edge {

void check_spec(const PatchSpec& spec);
void check_image(const ImageView& image);
void check_out(const void* out, std::size_t out_bytes, const PatchGrid& grid, const PatchSpec& spec, Dtype dtype);

}  // namespace compass_edge
