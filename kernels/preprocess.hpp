// Preprocess: one pass from a picture (YUV, RGB or gray) to the patches a Qwen-VL vision tower reads.
//
//   Preprocessor preprocess(PatchSpec{}, Dtype::f16);
//   const PatchGrid grid = preprocess.grid(view.width, view.height);
//   preprocess.run(view, buffer, bytes);          // grid.rows() x spec.columns() elements
//
// The picture is converted to 8-bit RGB, resized (antialiased bicubic, 8-bit, horizontal before vertical), normalised
// and written in merge-block order, each still repeated along the temporal axis: what the Hugging Face image
// processor of Qwen2-VL, Qwen2.5-VL, Qwen3-VL and Qwen3.5 computes in five passes over the whole picture.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "kernels/dtype.hpp"
#include "kernels/image.hpp"
#include "kernels/isa.hpp"

namespace compass_edge {

// Defaults are Qwen3-VL's. min_pixels and max_pixels bound the resized area, as `size.shortest_edge` and
// `size.longest_edge` of preprocessor_config.json do.
struct PatchSpec {
    int patch = 16;
    int merge = 2;
    int temporal = 2;
    long min_pixels = 65536;
    long max_pixels = 16777216;
    std::array<float, 3> mean{0.5f, 0.5f, 0.5f};
    std::array<float, 3> std{0.5f, 0.5f, 0.5f};

    constexpr int factor() const { return patch * merge; }
    constexpr int columns() const { return 3 * temporal * patch * patch; }
};

// The resized picture in patches: image_grid_thw is (1, height, width).
struct PatchGrid {
    int height = 0;
    int width = 0;

    constexpr int rows() const { return height * width; }
};

// Not thread-safe: one Preprocessor a thread. Allocates when built and when a new picture geometry is first seen;
// a run over a geometry seen last time allocates nothing.
class Preprocessor {
  public:
    // isa: which kernels run; defaults to the best the machine has or to what COMPASS_EDGE_ISA names.
    Preprocessor(const PatchSpec& spec, Dtype dtype, Isa isa = current_isa());
    ~Preprocessor();
    Preprocessor(Preprocessor&&) noexcept;
    Preprocessor& operator=(Preprocessor&&) noexcept;

    const PatchSpec& spec() const;
    Dtype dtype() const;
    Isa isa() const;

    // Throws when the picture cannot be resized by the model's rule (an aspect ratio beyond 200).
    PatchGrid grid(int width, int height) const;

    // image [host, u8] [planes]                           read only, exactly plane_extent bytes a row
    // out   [host, dtype] [grid.rows(), spec.columns()]   caller's buffer of at least that many bytes
    // A buffer aligned to 64 bytes is filled faster when it is large.
    // Throws std::invalid_argument, before it writes, for a missing plane, a stride or a buffer that is too small.
    void run(const ImageView& image, void* out, std::size_t out_bytes);

  private:
    struct Plan;
    std::unique_ptr<Plan> plan_;
};

}  // namespace compass_edge
