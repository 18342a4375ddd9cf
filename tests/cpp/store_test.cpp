#include "runtime/store.hpp"

#include <algorithm>
#include <thread>
#include <vector>

#include "runtime/ring.hpp"
#include "tests/cpp/check.hpp"

using namespace compass_edge;

namespace {

constexpr int side = 16;
const std::size_t frame_bytes = packed_layout(PixelFormat::gray8, side, side).bytes;

struct Stream {
    std::shared_ptr<FrameRing> ring = FrameRing::open({.frame_bytes = frame_bytes, .history = 2, .leases = 2});
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

std::shared_ptr<FrameStore> store_of(int max_frames) {
    return FrameStore::open({.frame_bytes = frame_bytes, .max_frames = max_frames});
}

// Every pixel is the frame's number.
bool whole(const FrameRef& frame) {
    const ImageView view = frame.view();
    const auto value = static_cast<std::uint8_t>(frame.info().seq);
    for (int y = 0; y < side; ++y) {
        const std::uint8_t* row = view.data[0] + y * view.stride[0];
        if (!std::all_of(row, row + side, [&](std::uint8_t pixel) { return pixel == value; })) return false;
    }
    return true;
}

}  // namespace

TEST(keeps_a_frame_long_after_the_ring_forgot_it) {
    Stream stream;
    auto store = store_of(10);
    for (int i = 0; i < 100; ++i) {
        const FrameRef frame = stream.next(i);
        if (i % 10 == 0) CHECK(store->keep(frame));
    }
    CHECK((store->sequence_numbers() == std::vector<std::uint64_t>{0, 10, 20, 30, 40, 50, 60, 70, 80, 90}));
    CHECK(stream.reader.get(30).miss == Miss::overwritten);
    CHECK(whole(store->get(30)));
    CHECK_EQ(store->get(30).info().stamp.pts, 30);
    CHECK(!store->get(31));
}

TEST(a_full_store_refuses_and_counts_until_a_frame_is_dropped) {
    Stream stream;
    auto store = store_of(3);
    for (int i = 0; i < 3; ++i) CHECK(store->keep(stream.next(i)));
    const FrameRef fourth = stream.next(3);
    CHECK(!store->keep(fourth));
    CHECK_EQ(store->stats().refused, 1u);
    CHECK_EQ(store->stats().kept, 3);
    store->drop(1);
    store->drop(1);
    store->drop(1000);
    CHECK(store->keep(fourth));
    CHECK((store->sequence_numbers() == std::vector<std::uint64_t>{0, 2, 3}));
    CHECK_EQ(store->stats().refused, 1u);
    CHECK_EQ(store->stats().bytes, 3 * frame_bytes);
}

TEST(a_frame_that_is_there_already_is_not_kept_twice) {
    Stream stream;
    auto store = store_of(1);
    const FrameRef frame = stream.next(0);
    CHECK(store->keep(frame));
    CHECK(store->keep(frame));
    CHECK_EQ(store->stats().kept, 1);
    CHECK_EQ(store->stats().refused, 0u);
    store->drop(0);
    CHECK(!store->get(0));
}

TEST(a_frame_in_a_readers_hands_survives_drop_and_clear) {
    Stream stream;
    auto store = store_of(2);
    store->keep(stream.next(0));
    store->keep(stream.next(1));
    FrameRef dropped = store->get(0);
    const FrameRef cleared = store->get(1);
    store->drop(0);
    store->clear();
    CHECK(store->sequence_numbers().empty());
    CHECK_EQ(store->stats().kept, 0);
    for (int i = 2; i < 50; ++i) CHECK(!store->keep(stream.next(i)));
    dropped.reset();
    for (int i = 50; i < 99; ++i) {
        CHECK(store->keep(stream.next(i)));
        store->drop(static_cast<std::uint64_t>(i));
    }
    CHECK(whole(cleared));
    CHECK_EQ(cleared.info().seq, 1u);
    store.reset();
    CHECK(whole(cleared));
}

TEST(the_byte_budget_caps_the_frames) {
    auto store = FrameStore::open({.frame_bytes = frame_bytes, .max_frames = 128, .max_bytes = frame_bytes * 8 + 1});
    CHECK_EQ(store->options().max_frames, 8);
    CHECK_EQ(store->stats().bytes, frame_bytes * 8);
    CHECK_THROWS(FrameStore::open({.frame_bytes = frame_bytes, .max_bytes = frame_bytes - 1}), "Raise max_bytes");
    CHECK_THROWS(FrameStore::open({.frame_bytes = frame_bytes, .max_frames = 0}), "at least 1");
    CHECK_THROWS(FrameStore::open({}), "at least 1");
}

TEST(a_frame_that_is_too_large_says_so) {
    Stream stream;
    auto store = FrameStore::open({.frame_bytes = frame_bytes / 2, .max_frames = 4});
    CHECK_THROWS(store->keep(stream.next(0)), "Open it with the ring's frame_bytes");
    CHECK_EQ(store->stats().kept, 0);
}

TEST(threads_that_keep_drop_and_read_see_whole_frames_only) {
    Stream stream;
    auto store = store_of(6);
    constexpr std::uint64_t frames = 20000;
    std::atomic<bool> done{false};
    std::atomic<bool> all_whole{true};
    std::atomic<std::uint64_t> newest{0};
    std::vector<std::thread> readers;
    for (int i = 0; i < 3; ++i) {
        readers.emplace_back([&] {
            while (!done.load()) {
                const FrameRef frame = store->get(newest.load());
                if (frame && !whole(frame)) all_whole = false;
            }
        });
    }
    std::uint64_t kept = 0;
    for (std::uint64_t seq = 0; seq < frames; ++seq) {
        if (store->keep(stream.next(static_cast<int>(seq & 255)))) ++kept;
        newest = seq;
        if (seq >= 2) store->drop(seq - 2);
    }
    done = true;
    for (std::thread& reader : readers) reader.join();
    CHECK(all_whole.load());
    CHECK_EQ(kept + store->stats().refused, frames);
    CHECK_EQ(store->stats().refused, 0u);  // two or three kept and one in each reader's hands
}

int main(int argc, char** argv) { return check::run(argc, argv); }
