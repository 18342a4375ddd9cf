// The vector operations the *_simd.cpp files are written in, for the instruction set this file is compiled with.
//
// Each *_simd.cpp is compiled once per instruction set into its own namespace. Everything here has internal linkage and
// no standard template is instantiated: the linker keeps one copy of an inline function, and if that copy came from an
// AVX-512 object, the baseline would run it too.
#pragma once

#if defined(__AVX512BW__)
#define COMPASS_EDGE_ISA avx512
#include "kernels/simd_avx512.hpp"
#elif defined(__AVX2__)
#define COMPASS_EDGE_ISA avx2
#include "kernels/simd_avx2.hpp"
#elif defined(__ARM_NEON)
#define COMPASS_EDGE_ISA neon
#include "kernels/simd_neon.hpp"
#else
#error "compile the *_simd.cpp files with -mavx2 -mfma -mf16c, with AVX-512 on top, or for aarch64"
#endif
