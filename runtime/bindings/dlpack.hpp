// The part of the DLPack 1 interface that a read-only host tensor needs. Field order and sizes are the standard's.
#pragma once

#include <cstdint>

namespace compass_edge::dlpack {

struct Version {
    std::uint32_t major;
    std::uint32_t minor;
};

struct Device {
    std::int32_t type;
    std::int32_t id;
};

struct DataType {
    std::uint8_t code;
    std::uint8_t bits;
    std::uint16_t lanes;
};

struct Tensor {
    void* data;
    Device device;
    std::int32_t ndim;
    DataType dtype;
    std::int64_t* shape;
    std::int64_t* strides;  // in elements
    std::uint64_t byte_offset;
};

struct ManagedTensor {
    Version version;
    void* manager;
    void (*deleter)(ManagedTensor* self);
    std::uint64_t flags;
    Tensor tensor;
};

constexpr std::int32_t device_cpu = 1;
constexpr std::uint8_t code_unsigned = 1;
constexpr std::uint64_t flag_read_only = 1;
constexpr const char* capsule_name = "dltensor_versioned";

}  // namespace compass_edge::dlpack
