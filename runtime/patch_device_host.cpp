// The host's twin of the GPU: the same calls in the same order, each done at once.
#include <cstring>
#include <vector>

#include "runtime/error.hpp"
#include "runtime/patch_device.hpp"

namespace compass_edge {
namespace {

class HostDevice final : public PatchDevice {
  public:
    HostDevice(const PatchSpec& spec, Dtype dtype) : preprocess_(spec, dtype) {}

    PatchGrid grid(int width, int height) const override { return preprocess_.grid(width, height); }
    void plan(int, int, std::size_t bytes) override { room_.resize(bytes); }
    bool pin(std::span<const std::uint8_t>) override { return false; }
    void unpin(std::span<const std::uint8_t>) noexcept override {}
    void upload(const std::uint8_t* bytes, std::size_t count) override {
        if (count > room_.size()) throw Error(Fault::task, "A picture went up that no room was made for.");
        std::memcpy(room_.data(), bytes, count);
    }
    void patch(const Geometry& geometry, void* out, std::size_t out_bytes) override {
        preprocess_.run(view_of(geometry, room_.data()), out, out_bytes);
    }
    std::uint64_t ticket() override { return ++tickets_; }
    bool passed(std::uint64_t ticket) override { return ticket <= tickets_; }
    void wait() override {}

  private:
    Preprocessor preprocess_;
    std::vector<std::uint8_t> room_;
    std::uint64_t tickets_ = 0;
};

}  // namespace

std::unique_ptr<PatchDevice> open_host_device(const PatchSpec& spec, Dtype dtype) {
    return std::make_unique<HostDevice>(spec, dtype);
}

#if !COMPASS_EDGE_HAS_CUDA
std::unique_ptr<PatchDevice> open_cuda_device(const PatchSpec&, Dtype, CUstream_st*) {
    throw Error(Fault::environment,
                "compass-edge was built without CUDA, so patches cannot be made on the GPU. Install it again with "
                "`CMAKE_ARGS=-DCOMPASS_EDGE_CUDA=ON pip install .` (needs nvcc); until then the CPU makes them.");
}
bool built_with_cuda() { return false; }
#endif

}  // namespace compass_edge
