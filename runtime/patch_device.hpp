// PatchDevice: what turns pictures into patches in its own memory, in the order in which it was asked, on one stream.
//
// Two twins: the GPU (patch_device_cuda.cpp, compiled with CUDA) and the host (patch_device_host.cpp), on which
// everything that FramePatcher decides is tested.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "kernels/preprocess.hpp"
#include "runtime/frame.hpp"

struct CUstream_st;

namespace compass_edge {

class PatchDevice {
  public:
    virtual ~PatchDevice() = default;

    virtual PatchGrid grid(int width, int height) const = 0;
    // Room for one picture of this size and so many bytes. May block and allocate; nothing else does.
    virtual void plan(int width, int height, std::size_t bytes) = 0;
    // Makes copies from this memory fast, until unpin. False when the device cannot: copies from it are as right, and
    // slower.
    virtual bool pin(std::span<const std::uint8_t> memory) = 0;
    virtual void unpin(std::span<const std::uint8_t> memory) noexcept = 0;
    // Enqueues a copy into that room. The host's bytes must stay until the ticket that follows has passed.
    virtual void upload(const std::uint8_t* bytes, std::size_t count) = 0;
    // Enqueues the kernels. The geometry's offsets count from the start of the room; out is the device's memory.
    virtual void patch(const Geometry& geometry, void* out, std::size_t out_bytes) = 0;
    // Stands for everything that was enqueued so far.
    virtual std::uint64_t ticket() = 0;
    virtual bool passed(std::uint64_t ticket) = 0;
    // Blocks until everything has happened.
    virtual void wait() = 0;
};

// Patches in the host's memory, each call done when it returns.
std::unique_ptr<PatchDevice> open_host_device(const PatchSpec& spec, Dtype dtype);

// Patches in the current GPU's memory, on the caller's stream, which must outlive the device.
// Throws Error (environment) without a usable GPU, or when built without CUDA.
std::unique_ptr<PatchDevice> open_cuda_device(const PatchSpec& spec, Dtype dtype, CUstream_st* stream);

// Whether this build has the GPU's twin at all.
bool built_with_cuda();

}  // namespace compass_edge
