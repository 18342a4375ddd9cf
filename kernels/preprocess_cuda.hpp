// The CUDA twin of Preprocessor: same picture, same patches, on the device.
//
//   CudaPreprocessor preprocess(PatchSpec{}, Dtype::f16);
//   preprocess.plan(1280, 720);
//   preprocess.run(view_of_device_planes, device_out, bytes, stream);
//
// Compiled for sm_87, sm_110 and sm_120 and NOT YET EXECUTED ON A GPU. What its threads compute is executed on the host
// by the tests (preprocess_element.hpp); the launches, copies and speed are not proved by anything yet. Built without
// CUDA, the same class exists and its constructor says so.
#pragma once

#include <cstddef>
#include <memory>

#include "kernels/preprocess.hpp"

struct CUstream_st;  // cudaStream_t is a pointer to it

namespace compass_edge {

// Not thread-safe: one a thread and stream. All device memory belongs to the device that was current when it was built.
class CudaPreprocessor {
  public:
    // Throws std::runtime_error when there is no usable device, or when built without CUDA.
    CudaPreprocessor(const PatchSpec& spec, Dtype dtype);
    ~CudaPreprocessor();
    CudaPreprocessor(CudaPreprocessor&&) noexcept;
    CudaPreprocessor& operator=(CudaPreprocessor&&) noexcept;

    PatchGrid grid(int width, int height) const;

    // Allocates device memory for this picture size and uploads its weights. Blocks. Any pixel format may follow.
    void plan(int width, int height);

    // image [device, u8] [planes]                           of the planned size
    // out   [device, dtype] [grid.rows(), spec.columns()]
    // Enqueues two kernels on the stream: neither blocks nor allocates. Throws when the size was not planned.
    void run(const ImageView& image, void* out, std::size_t out_bytes, CUstream_st* stream);

  private:
    struct Plan;
    std::unique_ptr<Plan> plan_;
};

}  // namespace compass_edge
