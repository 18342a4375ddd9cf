// Decoding: count, order and time stamps on the goldens; held frames stay as they are; damage is counted and survived.
#include "runtime/decoder.hpp"

#include <algorithm>
#include <random>

#include "runtime/av.hpp"
#include "runtime/error.hpp"
#include "runtime/feed.hpp"
#include "tests/cpp/check.hpp"
#include "tests/cpp/clip.hpp"

using namespace compass_edge;
using clip::golden;
using clip::TemporaryFile;

namespace {

struct Played {
    std::vector<int> numbers;
    std::vector<std::int64_t> pts;
    std::vector<std::uint32_t> flags;
    FeedStats stats;
    int changed = 0;
};

// Every frame of the file, each held for a while and checked when it is let go.
Played play(const std::string& path, FeedOptions options = {}) {
    Feed feed({.url = path}, options);
    Reader reader = feed.ring()->reader(options.leases);
    clip::Held held(static_cast<std::size_t>(options.leases));
    Played played;
    std::uint64_t next = 0;
    while (feed.step() == FeedState::running) {
        held.drop(static_cast<std::size_t>(options.leases) - 1);
        FrameRef frame = reader.latest().frame;
        CHECK(frame);
        CHECK_EQ(frame.info().seq, next++);
        CHECK(frame.info().stamp.captured_ns > 0);
        played.numbers.push_back(clip::number(frame.view()));
        played.pts.push_back(frame.info().stamp.pts);
        played.flags.push_back(frame.info().stamp.flags);
        held.take(std::move(frame));
    }
    CHECK(feed.state() == FeedState::ended);
    CHECK(feed.step() == FeedState::ended);  // and stays there
    played.stats = feed.stats();
    played.changed = held.changed();
    return played;
}

void check_whole(const Played& played, int frames) {
    CHECK_EQ(played.numbers.size(), static_cast<std::size_t>(frames));
    for (int i = 0; i < frames; ++i) {
        CHECK_EQ(played.numbers[i], i);
        CHECK_EQ(played.flags[i], 0u);
        if (i > 0) CHECK(played.pts[i] > played.pts[i - 1]);
    }
    CHECK_EQ(played.changed, 0);
    CHECK_EQ(played.stats.decoder.frames, static_cast<std::uint64_t>(frames));
    CHECK_EQ(played.stats.decoder.damaged_packets, 0u);
    CHECK(!played.stats.truncated);
}

std::vector<char> damaged(const std::string& name, int faults, unsigned seed) {
    std::vector<char> bytes = clip::bytes_of(golden(name));
    std::mt19937 random(seed);
    for (int i = 0; i < faults; ++i) {
        const std::size_t at = 1500 + random() % (bytes.size() - 1500);
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << (random() % 8)));
    }
    return bytes;
}

}  // namespace

TEST(every_golden_comes_out_whole_and_in_order) {
    for (const auto& [name, frames] : {std::pair("h264.mp4", 60),
                                       {"h264.mkv", 60},
                                       {"h264.ts", 60},
                                       {"yuv444p.mp4", 24},
                                       {"ten_bit.mp4", 24},
                                       {"odd.avi", 12},
                                       {"variable.mkv", 24},
                                       {"redrawn.mov", 24}}) {
        check_whole(play(golden(name)), frames);
    }
}

TEST(pictures_are_decoded_into_their_slots) {
    for (const auto& [name, frames] : {std::pair("h264.mp4", 60u), {"odd.avi", 12u}, {"redrawn.mov", 24u}}) {
        const Played played = play(golden(name));
        CHECK_EQ(played.stats.decoder.direct, frames);
        CHECK_EQ(played.stats.decoder.copied, 0u);
    }
    CHECK_EQ(play(golden("yuv444p.mp4")).stats.decoder.converted, 24u);
    CHECK_EQ(play(golden("ten_bit.mp4")).stats.decoder.converted, 24u);
}

TEST(held_frames_never_change_whatever_the_threads_and_the_ring) {
    for (const char* name : {"h264.mp4", "h264.ts", "redrawn.mov", "odd.avi", "yuv444p.mp4", "rotated.mp4"}) {
        for (const int threads : {1, 4}) {
            for (const int leases : {1, 3, 16}) {
                const Played played = play(golden(name), {.history = 1, .leases = leases, .threads = threads});
                CHECK_EQ(played.changed, 0);
                CHECK_EQ(played.stats.decoder.damaged_packets, 0u);
            }
        }
    }
}

TEST(frame_threads_change_nothing_in_what_comes_out) {
    const Played one = play(golden("h264.mp4"));
    const Played four = play(golden("h264.mp4"), {.threads = 4});
    CHECK(one.numbers == four.numbers);
    CHECK(one.pts == four.pts);
    CHECK(four.stats.decoder.direct > 0);
}

TEST(variable_frame_times_are_kept) {
    const Played played = play(golden("variable.mkv"));
    for (int n = 0; n < 24; ++n) CHECK_EQ(played.pts[n], 33 * n + 16 * (n / 3) + n % 3 * 5);
}

TEST(a_rotated_picture_comes_out_upright) {
    // rotated.mp4 is the clip lying down: turned clockwise by 90 degrees its left edge becomes its upper edge.
    Feed lying({.url = golden("h264.mp4")}, {});
    Feed upright({.url = golden("rotated.mp4")}, {});
    Reader lying_reader = lying.ring()->reader(1);
    Reader upright_reader = upright.ring()->reader(1);
    for (int n = 0; n < 12; ++n) {  // the first group of pictures is the same in both files
        CHECK(lying.step() == FeedState::running);
        CHECK(upright.step() == FeedState::running);
        const FrameRef a = lying_reader.latest().frame;
        const FrameRef b = upright_reader.latest().frame;
        CHECK_EQ(b.view().width, a.view().height);
        CHECK_EQ(b.view().height, a.view().width);
        for (int plane = 0; plane < 3; ++plane) {
            const PlaneExtent extent = plane_extent(PixelFormat::yuv420p, plane, a.view().width, a.view().height);
            for (int y = 0; y < extent.rows; ++y) {
                for (int x = 0; x < extent.row_bytes; ++x) {
                    const int before = a.view().data[plane][y * a.view().stride[plane] + x];
                    const int after = b.view().data[plane][x * b.view().stride[plane] + extent.rows - 1 - y];
                    CHECK_EQ(before, after);
                }
            }
        }
    }
    CHECK_EQ(upright.stats().decoder.converted, 12u);
}

TEST(damage_is_counted_flagged_and_survived) {
    int damaged_runs = 0, last_seen = 0;
    for (unsigned seed = 0; seed < 24; ++seed) {
        const TemporaryFile file("damaged.ts", damaged("h264.ts", 12, seed));
        const Played played = play(file.path());
        CHECK(played.numbers.size() >= 20);
        CHECK_EQ(played.changed, 0);
        const DecoderStats& stats = played.stats.decoder;
        if (stats.damaged_packets == 0) continue;
        ++damaged_runs;
        CHECK(stats.damaged_frames > 0);
        if (!played.numbers.empty() && played.numbers.back() == 59) ++last_seen;
    }
    CHECK(damaged_runs >= 12);
    CHECK(last_seen >= damaged_runs / 2);  // the rest lost the last packet itself, or its key frame
}

TEST(a_clean_key_frame_ends_the_damage) {
    std::vector<char> bytes = clip::bytes_of(golden("h264.mp4"));
    // In the middle of the pictures, which come before the index; clean key frames follow.
    for (std::size_t i = bytes.size() * 30 / 100; i < bytes.size() * 35 / 100; i += 3)
        bytes[i] = static_cast<char>(~bytes[i]);
    const TemporaryFile file("middle.mp4", bytes);
    const Played played = play(file.path());
    CHECK(played.stats.decoder.damaged_packets > 0);
    CHECK_EQ(played.flags.front() & frame_damaged, 0u);
    CHECK_EQ(played.flags.back() & frame_damaged, 0u);
    CHECK_EQ(played.numbers.back(), 59);
}

TEST(a_truncated_file_gives_what_it_has_and_says_so) {
    std::vector<char> bytes = clip::bytes_of(golden("odd.avi"));
    bytes.resize(bytes.size() / 2);
    const TemporaryFile file("half.avi", bytes);
    const Played played = play(file.path());
    CHECK(played.numbers.size() >= 3);
    CHECK(played.numbers.size() < 12);
    CHECK(played.stats.truncated);
    for (std::size_t i = 0; i + 1 < played.numbers.size(); ++i) CHECK_EQ(played.numbers[i], static_cast<int>(i));
}

TEST(a_picture_that_cannot_be_decoded_is_a_gap) {
    std::vector<char> bytes = clip::bytes_of(golden("odd.avi"));
    const std::string start("\xff\xd8\xff", 3);  // of a JPEG
    auto at = bytes.begin();
    for (int n = 0; n < 6; ++n) at = std::search(at + 1, bytes.end(), start.begin(), start.end());
    std::fill(at, at + 1000, '\0');
    const TemporaryFile file("hole.avi", bytes);
    const Played played = play(file.path());
    CHECK((played.numbers == std::vector<int>{0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11}));
    CHECK_EQ(played.flags[5], static_cast<unsigned>(frame_gap_before));
    CHECK_EQ(played.stats.decoder.damaged_packets, 1u);
}

TEST(pictures_that_outgrow_the_ring_are_a_gap) {
    const Played played = play(golden("two_sizes.h264"));
    CHECK_EQ(played.stats.decoder.oversize, 12u);
    CHECK_EQ(played.numbers.size(), 24u);
    for (int n = 0; n < 24; ++n) {
        CHECK_EQ(played.numbers[n], n % 12);
        CHECK_EQ(played.flags[n] & frame_gap_before, n == 12 ? 1u : 0u);
    }
    CHECK_EQ(played.changed, 0);
}

TEST(a_ring_planned_for_the_larger_size_takes_both) {
    const Played played = play(golden("two_sizes.h264"), {.max_width = 192, .max_height = 144});
    CHECK_EQ(played.stats.decoder.oversize, 0u);
    CHECK_EQ(played.numbers.size(), 36u);
    CHECK_EQ(played.stats.decoder.direct, 36u);
    CHECK_EQ(played.changed, 0);
}

TEST(feeds_refuse_what_cannot_work) {
    CHECK_THROWS(Feed({.url = golden("h264.mp4")}, {.threads = 0}), "1 to 64 threads");
    CHECK_THROWS(Feed({.url = golden("h264.mp4")}, {.history = 0}), "at least 1");
    CHECK_THROWS(Feed({.url = golden("h264.mp4")}, {.max_bytes = 1000}), "max_bytes");
    CHECK_THROWS(Feed({.url = golden("h264.mp4")}, {.max_backoff_s = 0}), "max_backoff_s");
    CHECK_THROWS(Feed({.url = golden("h264.mp4")}, {.max_width = 1 << 30}), "width");
}

TEST(leases_outlive_the_feed) {
    FrameRef frame;
    {
        Feed feed({.url = golden("h264.mp4")}, {.threads = 4});
        Reader reader = feed.ring()->reader(1);
        for (int n = 0; n < 10; ++n) feed.step();
        frame = reader.latest().frame;
    }
    CHECK_EQ(clip::number(frame.view()), 9);
}

namespace {

// Packet n of the clip is said to have been captured at 1000 * (n + 1). Gives each frame's capture time, by the number
// it shows. Without time stamps the packets go in as a raw stream's would.
std::vector<std::int64_t> capture_times(bool with_time_stamps) {
    Source source({.url = golden("h264.mp4")});
    auto ring = FrameRing::open({.frame_bytes = packed_layout(PixelFormat::yuv420p, 256, 192).bytes, .in_flight = 10});
    Writer writer = ring->writer();
    Reader reader = ring->reader(1);
    DecoderStats stats;
    Decoder decoder(source, writer, {.direct_slots = 9}, stats);
    Picture picture;
    std::vector<std::int64_t> times(60);
    const auto publish_all = [&] {
        while (decoder.receive(picture)) {
            CHECK(decoder.publish(picture));
            const Lookup shown = reader.latest();
            times.at(static_cast<std::size_t>(clip::number(shown.frame.view()))) = shown.frame.info().stamp.captured_ns;
        }
    };
    for (std::int64_t n = 0; source.read() == ReadState::packet; ++n) {
        const av::Packet packet(av_packet_clone(&source.packet()));
        if (!with_time_stamps) packet->pts = packet->dts = AV_NOPTS_VALUE;
        decoder.send(*packet, 1000 * (n + 1));
        publish_all();
    }
    decoder.finish();
    publish_all();
    picture.clear();
    return times;
}

}  // namespace

TEST(a_reordered_frame_keeps_the_capture_time_of_its_own_packet) {
    const std::vector<std::int64_t> times = capture_times(true);
    CHECK(!std::is_sorted(times.begin(), times.end()));  // the clip has B-frames: display order is not arrival order
    std::vector<std::int64_t> sorted = times;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t n = 0; n < sorted.size(); ++n) CHECK_EQ(sorted[n], static_cast<std::int64_t>(1000 * (n + 1)));
}

TEST(a_frame_without_a_time_stamp_is_never_called_fresher_than_it_is) {
    const std::vector<std::int64_t> truth = capture_times(true);
    const std::vector<std::int64_t> guessed = capture_times(false);
    for (std::size_t n = 0; n < truth.size(); ++n) {
        CHECK(guessed[n] > 0);
        CHECK(guessed[n] <= truth[n]);
        CHECK(guessed[n] >= truth[n] - 19000);  // nor older than the longest reordering explains
    }
}

// On a machine that has the hardware the film must come out the same; on any other a sentence says what is missing.
TEST(hardware_decodes_the_same_or_says_why_not) {
    const Played wanted = play(golden("h264.mp4"));
    for (const DecodeOn on : {DecodeOn::nvdec, DecodeOn::jetson}) {
        try {
            const Played played = play(golden("h264.mp4"), {.decoder = on});
            CHECK(played.numbers == wanted.numbers);
            CHECK(played.pts == wanted.pts);
        } catch (const Error& error) {
            CHECK(error.fault() == Fault::environment);
            const std::string said = error.what();
            CHECK(said.find(on == DecodeOn::nvdec ? "NVDEC was asked for" : "h264_nvv4l2dec") != std::string::npos);
            CHECK(said.find("Decode on the CPU instead") != std::string::npos);
        }
    }
}

int main(int argc, char** argv) { return check::run(argc, argv); }
