// The GPU: copies and kernels on the caller's stream. Compiled where CUDA is; NOT YET EXECUTED ON A GPU.
#include <cuda_runtime_api.h>

#include <array>
#include <string>

#include "kernels/preprocess_cuda.hpp"
#include "runtime/error.hpp"
#include "runtime/patch_device.hpp"

namespace compass_edge {
namespace {

void check(cudaError_t status, const char* what) {
    if (status == cudaSuccess) return;
    throw Error(Fault::task, std::string("The GPU could not ") + what + ": " + cudaGetErrorString(status) +
                                 ". After such an error nothing more runs in this process: start it again.");
}

// Events in a ring: a ticket's event has been used again only if the ticket was passed long ago.
constexpr std::size_t events = 64;

class CudaDevice final : public PatchDevice {
  public:
    CudaDevice(const PatchSpec& spec, Dtype dtype, CUstream_st* stream) : preprocess_(spec, dtype), stream_(stream) {
        for (cudaEvent_t& event : events_) {
            check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "make an event");
        }
    }
    ~CudaDevice() override {
        cudaStreamSynchronize(stream_);
        for (cudaEvent_t event : events_) {
            if (event != nullptr) cudaEventDestroy(event);
        }
        cudaFree(room_);
    }

    PatchGrid grid(int width, int height) const override { return preprocess_.grid(width, height); }

    void plan(int width, int height, std::size_t bytes) override {
        preprocess_.plan(width, height);
        if (bytes <= bytes_) return;
        check(cudaFree(room_), "free device memory");
        room_ = nullptr;
        bytes_ = 0;
        check(cudaMalloc(&room_, bytes), "allocate device memory");
        bytes_ = bytes;
    }
    bool pin(std::span<const std::uint8_t> memory) override {
        const cudaError_t status =
            cudaHostRegister(const_cast<std::uint8_t*>(memory.data()), memory.size(), cudaHostRegisterDefault);
        cudaGetLastError();  // a refusal is no failure
        return status == cudaSuccess;
    }
    void unpin(std::span<const std::uint8_t> memory) noexcept override {
        cudaHostUnregister(const_cast<std::uint8_t*>(memory.data()));
    }
    void upload(const std::uint8_t* bytes, std::size_t count) override {
        if (count > bytes_) throw Error(Fault::task, "A picture went up that no room was made for.");
        check(cudaMemcpyAsync(room_, bytes, count, cudaMemcpyHostToDevice, stream_), "copy a frame to the device");
    }
    void patch(const Geometry& geometry, void* out, std::size_t out_bytes) override {
        preprocess_.run(view_of(geometry, static_cast<const std::uint8_t*>(room_)), out, out_bytes, stream_);
    }
    std::uint64_t ticket() override {
        ++tickets_;
        check(cudaEventRecord(events_[tickets_ % events], stream_), "record an event");
        return tickets_;
    }
    bool passed(std::uint64_t ticket) override {
        if (ticket + events <= tickets_) {  // its event stands for a later ticket by now
            check(cudaEventSynchronize(events_[ticket % events]), "wait for an event");
            return true;
        }
        const cudaError_t status = cudaEventQuery(events_[ticket % events]);
        if (status == cudaErrorNotReady) return false;
        check(status, "ask for an event");
        return true;
    }
    void wait() override { check(cudaStreamSynchronize(stream_), "finish"); }

  private:
    CudaPreprocessor preprocess_;
    CUstream_st* stream_;
    std::array<cudaEvent_t, events> events_{};
    void* room_ = nullptr;
    std::size_t bytes_ = 0;
    std::uint64_t tickets_ = 0;
};

}  // namespace

std::unique_ptr<PatchDevice> open_cuda_device(const PatchSpec& spec, Dtype dtype, CUstream_st* stream) {
    int devices = 0;
    const cudaError_t status = cudaGetDeviceCount(&devices);
    if (status != cudaSuccess || devices == 0) {
        throw Error(Fault::environment, std::string("Patches on the GPU need an NVIDIA GPU, and none answers here (") +
                                            cudaGetErrorString(status) +
                                            "). Update its driver; nvidia-smi must list it.");
    }
    return std::make_unique<CudaDevice>(spec, dtype, stream);
}

bool built_with_cuda() { return true; }

}  // namespace compass_edge
