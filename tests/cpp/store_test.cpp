#include "runtime/store.hpp"

#include <numeric>
#include <vector>

#include "runtime/ring.hpp"
#include "tests/cpp/check.hpp"

using namespace compass_edge;

namespace {

constexpr int side = 16;

struct Stream {
    std::shared_ptr<FrameRing> ring = FrameRing::open(
        {.frame_bytes = packed_layout(PixelFormat::gray8, side, side).bytes, .history = 2, .leases = 2});
    Writer writer = ring->writer();
    Reader reader = ring->reader(2);
    std::vector<std::uint8_t> bytes = std::vector<std::uint8_t>(side * side);

    FrameRef next(int value) {
        std::fill(bytes.begin(), bytes.end(), static_cast<std::uint8_t>(value));
        ImageView view{
            .format = PixelFormat::gray8, .width = side, .height = side, .data = {bytes.data()}, .stride = {side}};
        writer.push(view, {.pts = value});
        return reader.latest().frame;
    }
};

StoreOptions options(int max_frames) {
    return {.frame_bytes = packed_layout(PixelFormat::gray8, side, side).bytes, .every = 10, .max_frames = max_frames};
}

}  // namespace

TEST(keeps_every_tenth_frame_long_after_the_ring_forgot_it) {
    Stream stream;
    auto store = FrameStore::open(options(128));
    for (int i = 0; i < 100; ++i) store->offer(stream.next(i));
    CHECK((store->sequence_numbers() == std::vector<std::uint64_t>{0, 10, 20, 30, 40, 50, 60, 70, 80, 90}));
    CHECK(stream.reader.get(30).miss == Miss::overwritten);
    CHECK_EQ(static_cast<int>(store->get(30).view().data[0][5]), 30);
    CHECK_EQ(store->get(30).info().stamp.pts, 30);
    CHECK(!store->get(31));
}

TEST(a_long_episode_is_thinned_evenly_and_stays_bounded) {
    Stream stream;
    auto store = FrameStore::open(options(8));
    for (int i = 0; i < 1000; ++i) {
        store->offer(stream.next(i));
        CHECK(store->stats().kept <= 8);
    }
    const std::vector<std::uint64_t> kept = store->sequence_numbers();
    CHECK(kept.size() >= 4);
    CHECK_EQ(kept.front(), 0u);
    for (std::size_t i = 1; i < kept.size(); ++i) CHECK_EQ(kept[i] - kept[i - 1], store->stats().stride);
    CHECK(kept.back() + store->stats().stride >= 1000);
    CHECK(store->stats().thinned > 0);
}

TEST(a_pin_survives_thinning_and_is_bounded) {
    Stream stream;
    auto store = FrameStore::open(options(8));
    for (int i = 0; i < 500; ++i) {
        const FrameRef frame = stream.next(i);
        store->offer(frame);
        if (i == 13) store->pin(frame);
    }
    CHECK_EQ(static_cast<int>(store->get(13).view().data[0][0]), 13);
    store->unpin(13);
    CHECK(!store->get(13));
    for (int i = 0; i < 8; ++i) store->pin(stream.next(i));
    CHECK_THROWS(store->pin(stream.next(0)), "at most 8");
}

TEST(a_frame_in_a_readers_hands_survives_thinning_and_begin) {
    Stream stream;
    auto store = FrameStore::open(options(4));
    store->offer(stream.next(200));
    const FrameRef held = store->get(0);
    for (int i = 1; i < 300; ++i) store->offer(stream.next(i % 100));
    store->begin(300);
    CHECK(store->sequence_numbers().empty());
    for (int i = 300; i < 700; ++i) store->offer(stream.next(i % 100));
    for (int i = 0; i < side; ++i) CHECK_EQ(static_cast<int>(held.view().data[0][i]), 200);
    CHECK_EQ(held.info().seq, 0u);
}

TEST(readers_that_hold_everything_are_counted_not_waited_for) {
    Stream stream;
    auto store = FrameStore::open(options(4));
    std::vector<FrameRef> held;
    for (int i = 0; i < 20000; ++i) {
        if (store->offer(stream.next(i % 100))) held.push_back(store->get(store->sequence_numbers().back()));
    }
    CHECK(store->stats().refused > 0);
    CHECK_EQ(held.size(), 16u);
    CHECK_EQ(store->stats().bytes, packed_layout(PixelFormat::gray8, side, side).bytes * 16);
}

TEST(the_byte_budget_caps_the_frames) {
    const std::size_t frame = packed_layout(PixelFormat::gray8, side, side).bytes;
    StoreOptions small = options(128);
    small.max_bytes = frame * 20;
    auto store = FrameStore::open(small);
    CHECK_EQ(store->options().max_frames, 8);
    CHECK(store->stats().bytes <= small.max_bytes);
    small.max_bytes = frame * 5;
    CHECK_THROWS(FrameStore::open(small), "Raise max_bytes");
}

int main(int argc, char** argv) { return check::run(argc, argv); }
