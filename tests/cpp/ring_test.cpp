#include "runtime/ring.hpp"

#include <cstring>
#include <vector>

#include "runtime/clock.hpp"
#include "tests/cpp/check.hpp"

using namespace compass_edge;

namespace {

struct Picture {
    std::vector<std::uint8_t> bytes;
    ImageView view;
};

Picture gray(int width, int height, std::uint8_t value) {
    Picture picture{std::vector<std::uint8_t>(static_cast<std::size_t>(width) * height, value), {}};
    picture.view.format = PixelFormat::gray8;
    picture.view.width = width;
    picture.view.height = height;
    picture.view.data[0] = picture.bytes.data();
    picture.view.stride[0] = width;
    return picture;
}

std::shared_ptr<FrameRing> small_ring(int history, int leases, int in_flight = 1) {
    const std::size_t bytes = packed_layout(PixelFormat::gray8, 8, 4).bytes;
    return FrameRing::open({.frame_bytes = bytes, .history = history, .leases = leases, .in_flight = in_flight});
}

void push(Writer& writer, int count, int from = 0) {
    for (int i = from; i < from + count; ++i) {
        const Picture picture = gray(8, 4, static_cast<std::uint8_t>(i));
        writer.push(picture.view, {.captured_ns = 1000 + i, .pts = i});
    }
}

}  // namespace

TEST(an_empty_ring_says_so) {
    auto ring = small_ring(2, 1);
    Reader reader = ring->reader(1);
    CHECK(reader.latest().miss == Miss::empty);
    CHECK(reader.get(0).miss == Miss::empty);
    CHECK(reader.next(0).miss == Miss::empty);
    CHECK_EQ(reader.leases_out(), 0);
}

TEST(latest_is_the_newest_and_carries_its_stamp) {
    auto ring = small_ring(2, 1);
    Writer writer = ring->writer();
    Reader reader = ring->reader(1);
    push(writer, 5);
    const Lookup found = reader.latest();
    CHECK(found);
    CHECK_EQ(found.frame.info().seq, 4u);
    CHECK_EQ(found.frame.info().stamp.captured_ns, 1004);
    CHECK_EQ(found.frame.info().stamp.pts, 4);
    CHECK_EQ(static_cast<int>(found.frame.view().data[0][0]), 4);
    CHECK_EQ(found.frame.info().geometry.stride[0], 64);
}

TEST(history_is_kept_however_many_leases_are_out) {
    auto ring = small_ring(3, 4);
    Writer writer = ring->writer();
    Reader holder = ring->reader(3);
    Reader reader = ring->reader(1);
    push(writer, 3);
    std::vector<FrameRef> held;
    for (std::uint64_t seq = 0; seq < 3; ++seq) held.push_back(holder.get(seq).frame);
    for (int newest = 3; newest < 40; ++newest) {
        push(writer, 1, newest);
        for (int back = 0; back < 3; ++back) CHECK(reader.get(static_cast<std::uint64_t>(newest - back)));
    }
    for (int seq = 0; seq < 3; ++seq) CHECK_EQ(static_cast<int>(held[seq].view().data[0][7]), seq);
}

TEST(the_writer_overwrites_the_oldest_unleased) {
    auto ring = small_ring(2, 1);  // four slots
    Writer writer = ring->writer();
    Reader reader = ring->reader(1);
    push(writer, 4);
    const FrameRef held = reader.get(0).frame;
    CHECK(held);
    push(writer, 1, 4);
    CHECK(reader.get(1).miss == Miss::budget);
    CHECK_EQ(static_cast<int>(held.view().data[0][0]), 0);
    CHECK_EQ(ring->stats().overwritten, 1u);
    CHECK_EQ(ring->stats().leases_out, 1);
    CHECK_EQ(ring->stats().oldest_lease_seq, 0u);
}

TEST(a_lookup_says_why_it_missed) {
    auto ring = small_ring(2, 2);
    Writer writer = ring->writer();
    Reader reader = ring->reader(1);
    push(writer, 20);
    CHECK(reader.get(3).miss == Miss::overwritten);
    CHECK(reader.get(20).miss == Miss::not_yet);
    const FrameRef held = reader.latest().frame;
    CHECK(reader.latest().miss == Miss::budget);
}

TEST(next_walks_every_nth_and_skips_what_is_gone) {
    auto ring = small_ring(8, 1);  // ten slots
    Writer writer = ring->writer();
    Reader reader = ring->reader(1);
    push(writer, 25);
    std::vector<std::uint64_t> seen;
    for (std::uint64_t since = 1;;) {
        const Lookup found = reader.next(since, 3);
        if (!found) {
            CHECK(found.miss == Miss::not_yet);
            break;
        }
        seen.push_back(found.frame.info().seq);
        since = found.frame.info().seq + 3;
    }
    CHECK((seen == std::vector<std::uint64_t>{16, 19, 22}));
}

TEST(there_is_one_writer_and_budgets_add_up) {
    auto ring = small_ring(2, 3);
    Writer writer = ring->writer();
    CHECK_THROWS(ring->writer(), "already has its writer");
    writer.reset();
    writer = ring->writer();
    Reader two = ring->reader(2);
    CHECK_THROWS(ring->reader(2), "2 of them belong to other readers");
    Reader one = ring->reader(1);
    push(writer, 1);
    FrameRef outlives = two.latest().frame;
    two.reset();
    CHECK_THROWS(ring->reader(2), "belong to other readers");
    outlives.reset();
    CHECK(ring->reader(2));
}

TEST(options_are_checked_at_open) {
    CHECK_THROWS(FrameRing::open({}), "frame_bytes");
    CHECK_THROWS(FrameRing::open({.frame_bytes = 64, .history = 4, .leases = 3, .slots = 7}), "history + leases");
    CHECK_THROWS(FrameRing::open({.frame_bytes = 64, .history = 0}), "at least 1");
    CHECK_THROWS(FrameRing::open({.frame_bytes = 64, .history = 5000}), "at most 4096 slots");
    CHECK_EQ(FrameRing::open({.frame_bytes = 64, .history = 4, .leases = 3, .slots = 8})->options().slots, 8);
}

TEST(a_frame_too_large_is_refused_and_nothing_is_lost) {
    auto ring = small_ring(2, 1);
    Writer writer = ring->writer();
    const Picture large = gray(640, 480, 1);
    CHECK_THROWS(writer.push(large.view, {}), "planned for frames of");
    push(writer, 1);
    CHECK_EQ(ring->stats().written, 1u);
}

TEST(gaps_are_flagged_once_and_counted) {
    auto ring = small_ring(4, 1);
    Writer writer = ring->writer();
    Reader reader = ring->reader(1);
    push(writer, 1);
    writer.mark_gap();
    push(writer, 2, 1);
    CHECK_EQ(reader.get(0).frame.info().stamp.flags, 0u);
    CHECK_EQ(reader.get(1).frame.info().stamp.flags, static_cast<unsigned>(frame_gap_before));
    CHECK_EQ(reader.get(2).frame.info().stamp.flags, 0u);
    CHECK_EQ(ring->stats().gaps, 1u);
}

TEST(write_slots_are_bounded_abandoned_and_kept_after_publishing) {
    auto ring = small_ring(1, 1, 2);  // four slots
    Writer writer = ring->writer();
    Reader reader = ring->reader(1);
    const Geometry geometry = packed_layout(PixelFormat::gray8, 8, 4).geometry;
    WriteSlot kept = writer.acquire();
    WriteSlot dropped = writer.acquire();
    CHECK(kept && dropped);
    CHECK(!writer.acquire());
    dropped.reset();
    CHECK(reader.latest().miss == Miss::empty);
    std::memset(kept.data(), 77, kept.bytes());
    writer.publish(kept, geometry, {.pts = 5});
    CHECK_THROWS(writer.publish(kept, geometry, {}), "published once");
    push(writer, 30, 1);  // a published slot that the writer still holds is not reused
    CHECK_EQ(static_cast<int>(reader.get(0).frame.view().data[0][0]), 77);
    kept.reset();
    push(writer, 30, 1);
    CHECK(reader.get(0).miss == Miss::overwritten);
}

TEST(a_lease_outlives_ring_and_reader_handles) {
    FrameRef frame;
    {
        auto ring = small_ring(1, 1);
        Writer writer = ring->writer();
        Reader reader = ring->reader(1);
        push(writer, 1, 42);
        frame = reader.latest().frame;
    }
    CHECK_EQ(static_cast<int>(frame.view().data[0][0]), 42);
}

int main(int argc, char** argv) { return check::run(argc, argv); }
