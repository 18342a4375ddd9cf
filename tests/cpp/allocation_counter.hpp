// Counts heap allocations of a whole program: include it in exactly one source file of an executable (glibc only).
//
// An allocation is ours when this program or the C++ library asked for it, and foreign when another library did. Not
// beside a sanitizer, which brings its own malloc.
#pragma once

#include <link.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);
}

namespace {

struct Range {
    std::uintptr_t begin, end;
};

// The code of this program and of the C++ library. Filled before main's first count; fixed, as it is read in malloc.
Range ours[16];
int our_ranges = 0;
std::atomic<bool> counting{false};
std::atomic<long> our_count{0}, foreign_count{0};

void count(const void* caller) {
    if (!counting.load(std::memory_order_relaxed)) return;
    const auto at = reinterpret_cast<std::uintptr_t>(caller);
    for (int i = 0; i < our_ranges; ++i) {
        if (at >= ours[i].begin && at < ours[i].end) {
            our_count.fetch_add(1, std::memory_order_relaxed);
            return;
        }
    }
    foreign_count.fetch_add(1, std::memory_order_relaxed);
}

int note_module(dl_phdr_info* module, std::size_t, void*) {
    const bool program = module->dlpi_name[0] == '\0';
    if (!program && std::strstr(module->dlpi_name, "libstdc++") == nullptr) return 0;
    for (int i = 0; i < module->dlpi_phnum && our_ranges < 16; ++i) {
        const auto& header = module->dlpi_phdr[i];
        if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
        const std::uintptr_t begin = module->dlpi_addr + header.p_vaddr;
        ours[our_ranges++] = {begin, begin + header.p_memsz};
    }
    return 0;
}

struct Counted {
    long ours, foreign;
};

template <class Body>
Counted allocations(Body body) {
    if (our_ranges == 0) dl_iterate_phdr(note_module, nullptr);
    our_count = foreign_count = 0;
    counting = true;
    body();
    counting = false;
    return {our_count, foreign_count};
}

}  // namespace

#pragma GCC visibility push(default)  // FFmpeg's libraries must find these
extern "C" {
void* malloc(std::size_t size) {
    count(__builtin_return_address(0));
    return __libc_malloc(size);
}
void* calloc(std::size_t items, std::size_t size) {
    count(__builtin_return_address(0));
    return __libc_calloc(items, size);
}
void* realloc(void* block, std::size_t size) {
    count(__builtin_return_address(0));
    return __libc_realloc(block, size);
}
void* memalign(std::size_t alignment, std::size_t size) {
    count(__builtin_return_address(0));
    return __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
    count(__builtin_return_address(0));
    return __libc_memalign(alignment, size);
}
int posix_memalign(void** block, std::size_t alignment, std::size_t size) {
    count(__builtin_return_address(0));
    *block = __libc_memalign(alignment, size);
    return *block != nullptr ? 0 : ENOMEM;
}
void free(void* block) { __libc_free(block); }
}
#pragma GCC visibility pop
