#include "kernels/preprocess_cuda.hpp"

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/patchify.hpp"
#include "kernels/preprocess_check.hpp"
#include "kernels/preprocess_element.hpp"
#include "kernels/smart_resize.hpp"

namespace compass_edge {
namespace {

void check(cudaError_t status, const char* what) {
    if (status == cudaSuccess) return;
    throw std::runtime_error(std::string("CUDA could not ") + what + ": " + cudaGetErrorString(status) +
                             ". Check the driver with nvidia-smi, or use the CPU's Preprocessor.");
}

struct Free {
    void operator()(void* memory) const { cudaFree(memory); }
};

template <class T>
using DeviceArray = std::unique_ptr<T, Free>;

template <class T>
DeviceArray<T> allocate(std::size_t count) {
    void* memory = nullptr;
    check(cudaMalloc(&memory, count * sizeof(T)), "allocate device memory");
    return DeviceArray<T>(static_cast<T*>(memory));
}

template <class T>
DeviceArray<T> upload(const T* values, std::size_t count) {
    DeviceArray<T> array = allocate<T>(count);
    check(cudaMemcpy(array.get(), values, count * sizeof(T), cudaMemcpyHostToDevice), "copy to the device");
    return array;
}

// An axis whose tables are in device memory.
struct DeviceAxis {
    DeviceArray<std::int32_t> start, count;
    DeviceArray<std::int16_t> weights;
    AxisView view{};

    DeviceAxis() = default;
    DeviceAxis(int in, int out) {
        const ResizeAxis axis(in, out);
        view = axis.view();
        start = upload(view.start, static_cast<std::size_t>(out));
        count = upload(view.count, static_cast<std::size_t>(out));
        weights = upload(view.weights, static_cast<std::size_t>(out) * view.taps);
        view.start = start.get();
        view.count = count.get();
        view.weights = weights.get();
        view.window = nullptr;
        view.shuffle = nullptr;
        view.block_weights = nullptr;
    }
};

constexpr int kThreads = 256;

// picture [device, u8] [planes] -> rows [device, u8] [3, height, width]
__global__ void resize_rows_kernel(ElementPicture picture, AxisView across, ElementRows rows) {
    const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (x < rows.width) write_row_pixel(picture, across, rows, x, static_cast<int>(blockIdx.y));
}

// rows [device, u8] [3, height, width] -> out [device, dtype] [patches, 3, temporal, patch, patch]
template <class Element>
__global__ void patchify_columns_kernel(ElementRows rows, AxisView down, ElementLayout layout, const Element* values,
                                        Element* out) {
    __shared__ Element table[3 * 256];
    for (int i = static_cast<int>(threadIdx.x); i < 3 * 256; i += static_cast<int>(blockDim.x)) table[i] = values[i];
    __syncthreads();
    const int elements = 3 * layout.patch * layout.patch, row = static_cast<int>(blockIdx.x);
    for (int within = static_cast<int>(threadIdx.x); within < elements; within += static_cast<int>(blockDim.x)) {
        write_element(rows, down, layout, table, row, within, out);
    }
}

}  // namespace

struct CudaPreprocessor::Plan {
    PatchSpec spec;
    Dtype dtype;
    DeviceArray<float> f32;
    DeviceArray<std::uint16_t> half;
    int width = 0, height = 0;
    PatchGrid grid;
    DeviceAxis across, down;
    DeviceArray<std::uint8_t> rows;

    Plan(const PatchSpec& s, Dtype d) : spec(s), dtype(d) {
        const Normaliser normaliser = make_normaliser(s.mean, s.std, d);
        f32 = upload(&normaliser.f32[0][0], 3 * 256);
        half = upload(&normaliser.half[0][0], 3 * 256);
    }
};

CudaPreprocessor::CudaPreprocessor(const PatchSpec& spec, Dtype dtype) {
    check_spec(spec);
    plan_ = std::make_unique<Plan>(spec, dtype);
}
CudaPreprocessor::~CudaPreprocessor() = default;
CudaPreprocessor::CudaPreprocessor(CudaPreprocessor&&) noexcept = default;
CudaPreprocessor& CudaPreprocessor::operator=(CudaPreprocessor&&) noexcept = default;

PatchGrid CudaPreprocessor::grid(int width, int height) const {
    const PatchSpec& spec = plan_->spec;
    const PictureSize size = smart_resize(width, height, spec.factor(), spec.min_pixels, spec.max_pixels);
    return {size.height / spec.patch, size.width / spec.patch};
}

void CudaPreprocessor::plan(int width, int height) {
    Plan& plan = *plan_;
    const PatchGrid new_grid = grid(width, height);
    plan.width = 0;  // if anything below throws, run refuses
    plan.across = DeviceAxis(width, new_grid.width * plan.spec.patch);
    plan.down = DeviceAxis(height, new_grid.height * plan.spec.patch);
    plan.rows = allocate<std::uint8_t>(static_cast<std::size_t>(3) * height * new_grid.width * plan.spec.patch);
    plan.grid = new_grid;
    plan.height = height;
    plan.width = width;
}

void CudaPreprocessor::run(const ImageView& image, void* out, std::size_t out_bytes, CUstream_st* stream) {
    Plan& plan = *plan_;
    check_image(image);
    if (image.width != plan.width || image.height != plan.height) {
        throw std::invalid_argument("Expected a picture of the planned size " + std::to_string(plan.width) + "x" +
                                    std::to_string(plan.height) + ", got " + std::to_string(image.width) + "x" +
                                    std::to_string(image.height) + ". Call plan() with the new size first.");
    }
    check_out(out, out_bytes, plan.grid, plan.spec, plan.dtype);
    ElementPicture picture{image.format, image.width, image.height,
                           {},           {},          color_coefficients(image.matrix, image.range)};
    for (int plane = 0; plane < 3; ++plane) {
        picture.data[plane] = image.data[plane];
        picture.stride[plane] = image.stride[plane];
    }
    const ElementRows rows{plan.rows.get(), plan.grid.width * plan.spec.patch, plan.height};
    const ElementLayout layout{plan.spec.patch, plan.spec.merge, plan.spec.temporal, plan.grid.width};
    const dim3 row_blocks((rows.width + kThreads - 1) / kThreads, rows.height);
    resize_rows_kernel<<<row_blocks, kThreads, 0, stream>>>(picture, plan.across.view, rows);
    if (plan.dtype == Dtype::f32) {
        patchify_columns_kernel<<<plan.grid.rows(), kThreads, 0, stream>>>(rows, plan.down.view, layout, plan.f32.get(),
                                                                           static_cast<float*>(out));
    } else {
        patchify_columns_kernel<<<plan.grid.rows(), kThreads, 0, stream>>>(
            rows, plan.down.view, layout, plan.half.get(), static_cast<std::uint16_t*>(out));
    }
    check(cudaGetLastError(), "launch the preprocess kernels");
}

}  // namespace compass_edge
