// No allocation a frame after warm-up, counted: malloc and operator new are replaced in this program.
//
// An allocation is ours when this program or the C++ library asked for it, and FFmpeg's when one of its libraries did
// (packets, reference bookkeeping). Ours must be zero; FFmpeg's are printed. Sanitizers bring their own malloc: there
// the tests are left out.
#include <cstdio>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define COMPASS_EDGE_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(COMPASS_EDGE_SANITIZED) || \
    !defined(__GLIBC__)

int main() { std::puts("left out: this build has another malloc"); }

#else

#include <link.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "kernels/preprocess.hpp"
#include "runtime/clock.hpp"
#include "runtime/ring.hpp"
#include "runtime/store.hpp"
#include "tests/cpp/check.hpp"
#ifdef COMPASS_EDGE_HAS_LIBAV
#include "tests/cpp/clip.hpp"
#endif

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

using namespace compass_edge;

TEST(the_count_counts) {
    const Counted counted = allocations([] {
        std::vector<int> some(1000);
        asm volatile("" : : "r"(some.data()) : "memory");
    });
    CHECK_EQ(counted.ours, 1);
}

TEST(ring_store_and_preprocess_allocate_nothing) {
    constexpr int width = 640, height = 480;
    const Layout layout = packed_layout(PixelFormat::yuv420p, width, height);
    const std::vector<std::uint8_t> pixels(layout.bytes, 90);
    const ImageView picture = view_of(layout.geometry, pixels.data());
    auto ring = FrameRing::open({.frame_bytes = layout.bytes, .history = 8, .leases = 4});
    auto store = FrameStore::open({.frame_bytes = layout.bytes, .every = 3, .max_frames = 8, .max_pins = 2});
    store->begin(0);
    Writer writer = ring->writer();
    Reader reader = ring->reader(4);
    Preprocessor preprocess(PatchSpec{}, Dtype::f16);
    const PatchGrid grid = preprocess.grid(width, height);
    std::vector<std::uint16_t> patches(static_cast<std::size_t>(grid.rows()) * PatchSpec{}.columns());
    bool all_there = true;
    const auto frame = [&](int n) {
        writer.push(picture, {.captured_ns = monotonic_ns(), .pts = n});
        const Lookup latest = reader.latest();
        const Lookup oldest = reader.next(0, 2);
        const Lookup same = reader.get(latest.frame.info().seq);
        all_there = all_there && latest && oldest && same && !reader.get(1u << 30);
        store->offer(latest.frame);
        if (n % 50 == 0) store->unpin(latest.frame.info().seq);
        const FrameRef kept = store->get(latest.frame.info().seq / 3 * 3);
        if (n % 20 == 0) preprocess.run(latest.frame.view(), patches.data(), patches.size() * sizeof patches[0]);
        ring->stats();
        store->stats();
    };
    for (int n = 0; n < 40; ++n) frame(n);
    const Counted counted = allocations([&] {
        for (int n = 40; n < 1040; ++n) frame(n);
    });
    CHECK(all_there);
    std::printf("ring, store and preprocess: %ld allocations in 1000 frames\n", counted.ours + counted.foreign);
    CHECK_EQ(counted.ours, 0);
    CHECK_EQ(counted.foreign, 0);
}

#ifdef COMPASS_EDGE_HAS_LIBAV
TEST(decoding_allocates_nothing_of_ours) {
    for (const char* name :
         {"h264.mp4", "h264.ts", "yuv444p.mp4", "ten_bit.mp4", "rotated.mp4", "redrawn.mov", "odd.avi"}) {
        for (const int threads : {1, 2}) {
            Feed feed({.url = clip::golden(name)}, {.threads = threads});
            Reader reader = feed.ring()->reader(1);
            for (int n = 0; n < 6; ++n) CHECK(feed.step() == FeedState::running);
            int frames = 0;
            const Counted counted = allocations([&] {
                while (feed.step() == FeedState::running) {
                    const Lookup latest = reader.latest();
                    frames += latest ? 1 : 0;
                }
            });
            CHECK(frames > 0);
            std::printf("%s, %d threads: ours %ld, FFmpeg's %.1f a frame\n", name, threads, counted.ours,
                        static_cast<double>(counted.foreign) / frames);
            CHECK_EQ(counted.ours, 0);
        }
    }
}
#endif

int main(int argc, char** argv) { return check::run(argc, argv); }

#endif
