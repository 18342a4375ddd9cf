// Which instruction set the kernels run on.
#pragma once

#include <string_view>
#include <vector>

namespace compass_edge {

enum class Isa : unsigned char { scalar, avx2, avx512, neon };

std::string_view name(Isa isa);

// The best this machine can run. avx2 stands for AVX2, FMA and F16C; avx512 for F, BW, VL and DQ on top of them.
Isa detected_isa();

// Everything this machine can run, scalar first and the best last.
std::vector<Isa> available_isas();

// The instruction set of that name. Throws a sentence when it is unknown or this machine cannot run it.
Isa parse_isa(std::string_view text);

// What COMPASS_EDGE_ISA names, or the best this machine can run when it is unset or empty.
Isa current_isa();

}  // namespace compass_edge
