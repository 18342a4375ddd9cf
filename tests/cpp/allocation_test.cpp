// No allocation a frame after warm-up, counted: malloc and operator new are replaced in this program.
//
// Ours must be zero; FFmpeg's (packets, reference bookkeeping) are printed. Sanitizers bring their own malloc: there
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

#include <string>
#include <vector>

#include "kernels/preprocess.hpp"
#include "runtime/clock.hpp"
#include "runtime/ring.hpp"
#include "runtime/store.hpp"
#include "tests/cpp/allocation_counter.hpp"
#include "tests/cpp/check.hpp"
#ifdef COMPASS_EDGE_HAS_LIBAV
#include "tests/cpp/clip.hpp"
#endif

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
    auto store = FrameStore::open({.frame_bytes = layout.bytes, .max_frames = 8});
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
        const std::uint64_t seq = latest.frame.info().seq;
        all_there = all_there && store->keep(latest.frame);
        if (seq >= 6) store->drop(seq - 6);
        const FrameRef kept = store->get(seq / 3 * 3);
        if (n % 100 == 0) store->clear();
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

TEST(preprocess_allocates_nothing_for_a_known_geometry) {
    for (const PixelFormat format :
         {PixelFormat::yuv420p, PixelFormat::nv12, PixelFormat::yuyv, PixelFormat::rgb24, PixelFormat::gray8}) {
        for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
            const Layout layout = packed_layout(format, 333, 251);
            const std::vector<std::uint8_t> pixels(layout.bytes, 90);
            Preprocessor preprocess(PatchSpec{}, dtype);
            std::vector<std::uint8_t> out(preprocess.grid(333, 251).rows() * PatchSpec{}.columns() * bytes(dtype));
            const auto run = [&] { preprocess.run(view_of(layout.geometry, pixels.data()), out.data(), out.size()); };
            run();
            CHECK_EQ(allocations(run).ours, 0);
        }
    }
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
