#include "kernels/isa.hpp"

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace compass_edge {
namespace {

#if defined(__x86_64__)
// __builtin_cpu_supports knows "f16c" only in newer compilers, hence the bits themselves.
struct X86Features {
    bool avx2 = false;
    bool avx512 = false;
};

std::uint64_t enabled_register_state() {
    std::uint32_t low = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (static_cast<std::uint64_t>(high) << 32) | low;
}

X86Features x86_features() {
    X86Features features;
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx)) return features;
    constexpr unsigned fma = 1u << 12, osxsave = 1u << 27, avx = 1u << 28, f16c = 1u << 29;
    constexpr unsigned wanted = fma | osxsave | avx | f16c;
    if ((ecx & wanted) != wanted) return features;
    // A CPU may have the instructions while the kernel does not save the registers.
    const std::uint64_t state = enabled_register_state();
    if ((state & 0x6) != 0x6 || !__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return features;
    features.avx2 = (ebx & (1u << 5)) != 0;
    constexpr unsigned f = 1u << 16, dq = 1u << 17, bw = 1u << 30, vl = 1u << 31;
    constexpr unsigned wanted512 = f | dq | bw | vl;
    features.avx512 = features.avx2 && (state & 0xe6) == 0xe6 && (ebx & wanted512) == wanted512;
    return features;
}
#endif

std::string list_available() {
    std::string text;
    for (const Isa isa : available_isas()) text += (text.empty() ? "" : ", ") + std::string(name(isa));
    return text;
}

}  // namespace

std::string_view name(Isa isa) {
    switch (isa) {
        case Isa::scalar:
            return "scalar";
        case Isa::avx2:
            return "avx2";
        case Isa::avx512:
            return "avx512";
        case Isa::neon:
            return "neon";
    }
    return "unknown";
}

std::vector<Isa> available_isas() {
    std::vector<Isa> all{Isa::scalar};
#if defined(__x86_64__)
    const X86Features features = x86_features();
    if (features.avx2) all.push_back(Isa::avx2);
    if (features.avx512) all.push_back(Isa::avx512);
#elif defined(__aarch64__)
    all.push_back(Isa::neon);
#endif
    return all;
}

Isa detected_isa() { return available_isas().back(); }

Isa parse_isa(std::string_view text) {
    for (const Isa isa : available_isas()) {
        if (name(isa) == text) return isa;
    }
    for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512, Isa::neon}) {
        if (name(isa) != text) continue;
        throw std::invalid_argument("The instruction set '" + std::string(text) +
                                    "' is not available on this machine, " + "which runs " + list_available() +
                                    ". Choose one of those, or leave it unset.");
    }
    throw std::invalid_argument("Expected an instruction set of scalar, avx2, avx512 or neon, got '" +
                                std::string(text) + "'. This machine runs " + list_available() +
                                "; choose one of those, or leave it unset.");
}

Isa current_isa() {
    const char* wanted = std::getenv("COMPASS_EDGE_ISA");
    if (wanted == nullptr || *wanted == '\0') return detected_isa();
    try {
        return parse_isa(wanted);
    } catch (const std::invalid_argument& error) {
        throw std::invalid_argument(std::string("COMPASS_EDGE_ISA: ") + error.what());
    }
}

}  // namespace compass_edge
