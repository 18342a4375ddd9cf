// One writer, four readers, a checksum per frame: a torn, stale or mislabelled frame cannot pass.
// COMPASS_EDGE_STRESS_FRAMES sets how many frames are written (a million unless told).
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "runtime/clock.hpp"
#include "runtime/ring.hpp"
#include "tests/cpp/check.hpp"

using namespace compass_edge;

namespace {

constexpr int width = 96;
constexpr int height = 8;

// Every byte depends on the frame's number, so that one byte of a neighbour changes the sum.
void fill(std::uint8_t* data, std::uint64_t seed) {
    std::uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
    for (int i = 0; i < width * height; i += 8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        std::memcpy(data + i, &state, 8);
    }
}

std::uint64_t checksum(const ImageView& view) {
    std::uint64_t sum = 0xcbf29ce484222325ull;
    for (int y = 0; y < view.height; ++y) {
        const std::uint8_t* row = view.data[0] + y * view.stride[0];
        for (int x = 0; x < view.width; x += 8) {
            std::uint64_t word;
            std::memcpy(&word, row + x, 8);
            sum = (sum ^ word) * 0x100000001b3ull;
        }
    }
    return sum;
}

struct Tally {
    std::uint64_t checked = 0;
    std::uint64_t torn = 0;
    std::uint64_t backwards = 0;
};

}  // namespace

TEST(readers_never_see_a_torn_frame) {
    const char* asked = std::getenv("COMPASS_EDGE_STRESS_FRAMES");
    const std::uint64_t frames = asked ? std::strtoull(asked, nullptr, 10) : 1'000'000;
    auto ring = FrameRing::open(
        {.frame_bytes = packed_layout(PixelFormat::gray8, width, height).bytes, .history = 4, .leases = 8});
    std::atomic<bool> done{false};
    std::vector<Tally> tallies(4);
    std::vector<std::thread> readers;
    for (int kind = 0; kind < 4; ++kind) {
        readers.emplace_back([&, kind] {
            Reader reader = ring->reader(2);
            Tally& tally = tallies[static_cast<std::size_t>(kind)];
            std::uint64_t last = 0;
            FrameRef slow;  // the fourth reader also sits on a frame while the writer laps it
            while (!done.load(std::memory_order_acquire)) {
                Lookup found = kind == 0   ? reader.latest()
                               : kind == 1 ? reader.next(last + 1)
                               : kind == 2 ? reader.get(last + 2)
                                           : reader.next(last + 3, 3);
                if (!found) {
                    if (kind == 2) last = reader.latest() ? reader.latest().frame.info().seq : last;
                    continue;
                }
                const FrameInfo& info = found.frame.info();
                tally.torn += checksum(found.frame.view()) != static_cast<std::uint64_t>(info.stamp.pts);
                tally.torn += info.stamp.captured_ns != static_cast<std::int64_t>(info.seq);
                tally.backwards += info.seq < last;
                last = info.seq;
                if (++tally.checked % 256 == 0) std::this_thread::yield();  // two cores: let the writer in
                if (kind == 3 && tally.checked % 64 == 0) slow = std::move(found.frame);
            }
        });
    }
    Writer writer = ring->writer();
    std::vector<std::uint8_t> bytes(width * height);
    ImageView view{
        .format = PixelFormat::gray8, .width = width, .height = height, .data = {bytes.data()}, .stride = {width}};
    const auto total = [&] {
        std::uint64_t sum = 0;
        for (const Tally& tally : tallies) sum += tally.checked;
        return sum;
    };
    for (std::uint64_t i = 0; i < frames; ++i) {
        fill(bytes.data(), i);
        const auto seq = writer.push(
            view, {.captured_ns = static_cast<std::int64_t>(i), .pts = static_cast<std::int64_t>(checksum(view))});
        CHECK_EQ(seq, i);
        if (i % 64 == 0) std::this_thread::yield();
    }
    done.store(true, std::memory_order_release);
    for (std::thread& reader : readers) reader.join();
    for (const Tally& tally : tallies) {
        CHECK_EQ(tally.torn, 0u);
        CHECK_EQ(tally.backwards, 0u);
    }
    CHECK(total() > 0);  // of all readers: on a busy machine one of them may not have had a turn
    const RingStats stats = ring->stats();
    CHECK_EQ(stats.written, frames);
    CHECK_EQ(stats.leases_out, 0);
    CHECK(stats.overwritten >= frames - static_cast<std::uint64_t>(ring->options().slots));
    std::printf("wrote %llu frames, checked %llu\n", static_cast<unsigned long long>(frames),
                static_cast<unsigned long long>(total()));
}

int main(int argc, char** argv) { return check::run(argc, argv); }
