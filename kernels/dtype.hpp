// What an element of the output is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace compass_edge {

enum class Dtype : std::uint8_t { f32, f16, bf16 };

constexpr std::size_t bytes(Dtype dtype) { return dtype == Dtype::f32 ? 4 : 2; }

constexpr std::string_view name(Dtype dtype) {
    return dtype == Dtype::f32 ? "f32" : dtype == Dtype::f16 ? "f16" : "bf16";
}

}  // namespace compass_edge
