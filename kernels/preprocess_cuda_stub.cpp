// CudaPreprocessor in a build without CUDA: it exists, and says what is missing.
#include <stdexcept>

#include "kernels/preprocess_cuda.hpp"

namespace compass_edge {
namespace {

[[noreturn]] void unavailable() {
    throw std::runtime_error(
        "compass-edge was built without CUDA, so there is no CudaPreprocessor. Configure with -DCOMPASS_EDGE_CUDA=ON "
        "(CMake preset cuda), or use Preprocessor on the CPU.");
}

}  // namespace

struct CudaPreprocessor::Plan {};

CudaPreprocessor::CudaPreprocessor(const PatchSpec&, Dtype) { unavailable(); }
CudaPreprocessor::~CudaPreprocessor() = default;
CudaPreprocessor::CudaPreprocessor(CudaPreprocessor&&) noexcept = default;
CudaPreprocessor& CudaPreprocessor::operator=(CudaPreprocessor&&) noexcept = default;
PatchGrid CudaPreprocessor::grid(int, int) const { unavailable(); }
void CudaPreprocessor::plan(int, int) { unavailable(); }
void CudaPreprocessor::run(const ImageView&, void*, std::size_t, CUstream_st*) { unavailable(); }

}  // namespace compass_edge
