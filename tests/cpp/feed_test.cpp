// The feed: exact seek, live senders that stall, break and come back, and threads that start and stop at any moment.
#include "runtime/feed.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <thread>

#include "runtime/clock.hpp"
#include "runtime/error.hpp"
#include "tests/cpp/check.hpp"
#include "tests/cpp/clip.hpp"

using namespace compass_edge;
using clip::golden;
using clip::TemporaryFile;

namespace {

// A camera on the loopback: who connects is sent `bytes` at once and `stay_s` of silence, then the connection closes.
class Sender {
  public:
    Sender(std::vector<char> bytes, double stay_s) : bytes_(std::move(bytes)), stay_s_(stay_s) {
        socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t length = sizeof address;
        CHECK(::bind(socket_, reinterpret_cast<sockaddr*>(&address), length) == 0);
        CHECK(::listen(socket_, 16) == 0);
        CHECK(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length) == 0);
        port_ = ntohs(address.sin_port);
        const timeval patience{0, 20'000};
        ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        thread_ = std::thread([this] { serve(); });
    }
    ~Sender() {
        stopping_ = true;
        thread_.join();
        ::close(socket_);
    }
    Sender(const Sender&) = delete;
    Sender& operator=(const Sender&) = delete;

    std::string url() const { return "tcp://127.0.0.1:" + std::to_string(port_); }
    int served() const { return served_; }

  private:
    void serve() {
        while (!stopping_) {
            const int peer = ::accept(socket_, nullptr, nullptr);
            if (peer < 0) continue;
            ++served_;
            std::size_t sent = 0;
            while (sent < bytes_.size() && !stopping_) {
                const auto n = ::send(peer, bytes_.data() + sent, bytes_.size() - sent, MSG_NOSIGNAL);
                if (n <= 0) break;
                sent += static_cast<std::size_t>(n);
            }
            const std::int64_t until = monotonic_ns() + static_cast<std::int64_t>(stay_s_ * 1e9);
            char byte = 0;
            while (!stopping_ && monotonic_ns() < until && ::recv(peer, &byte, 1, MSG_DONTWAIT) != 0) {
                std::this_thread::sleep_for(std::chrono::milliseconds(5));
            }
            ::close(peer);
        }
    }

    std::vector<char> bytes_;
    double stay_s_;
    int socket_ = -1;
    int port_ = 0;
    std::atomic<bool> stopping_{false};
    std::atomic<int> served_{0};
    std::thread thread_;
};

double seconds_since(std::int64_t ns) { return static_cast<double>(monotonic_ns() - ns) / 1e9; }

template <class Condition>
bool eventually(Condition condition) {
    const std::int64_t begin = monotonic_ns();
    while (!condition()) {
        if (seconds_since(begin) > 60) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
}

struct Shown {
    int number;
    double time_s;
    std::uint32_t flags;
};

Shown shown(const Reader& reader) {
    const Lookup found = reader.latest();
    CHECK(found);
    const Stamp& stamp = found.frame.info().stamp;
    return {clip::number(found.frame.view()),
            static_cast<double>(stamp.pts) * stamp.time_base_num / stamp.time_base_den, stamp.flags};
}

std::vector<double> times_of(Feed& feed, const Reader& reader) {
    std::vector<double> times;
    while (feed.step() == FeedState::running) times.push_back(shown(reader).time_s);
    return times;
}

void check_seeks(const std::string& name, int threads) {
    Feed feed({.url = golden(name)}, {.threads = threads});
    Reader reader = feed.ring()->reader(1);
    const std::vector<double> times = times_of(feed, reader);
    std::vector<int> order;
    for (int i = 0; i < static_cast<int>(times.size()); ++i) order.push_back(i);
    std::mt19937 random(7);
    for (int round = 0; round < 3; ++round) {
        for (const int i : order) {
            // At the frame's own time, and between it and the next one: the same frame is on screen.
            const double until = i + 1 < static_cast<int>(times.size()) ? times[i + 1] : times[i] + 0.02;
            for (const double at : {times[i], times[i] + 0.6 * (until - times[i])}) {
                feed.seek(at);
                CHECK(feed.step() == FeedState::running);
                const Shown now = shown(reader);
                CHECK_EQ(now.number, i);
                CHECK(std::abs(now.time_s - times[i]) < 1e-9);
                CHECK_EQ(now.flags, static_cast<unsigned>(frame_gap_before));
            }
            const bool last = i + 1 == static_cast<int>(times.size());
            CHECK(feed.step() == (last ? FeedState::ended : FeedState::running));
            if (!last) CHECK_EQ(shown(reader).number, i + 1);
        }
        if (round == 0) std::reverse(order.begin(), order.end());
        if (round == 1) std::shuffle(order.begin(), order.end(), random);
    }
    CHECK_EQ(feed.stats().decoder.damaged_packets, 0u);
}

}  // namespace

TEST(seek_is_exact_in_mp4) { check_seeks("h264.mp4", 1); }
TEST(seek_is_exact_in_mkv) { check_seeks("h264.mkv", 1); }
TEST(seek_is_exact_without_an_index) { check_seeks("h264.ts", 1); }
TEST(seek_is_exact_with_frame_threads) { check_seeks("h264.mp4", 4); }
TEST(seek_is_exact_at_a_variable_rate) { check_seeks("variable.mkv", 1); }
TEST(seek_is_exact_where_pictures_are_redrawn) { check_seeks("redrawn.mov", 1); }

TEST(seek_refuses_what_it_cannot_do_and_changes_nothing) {
    Feed feed({.url = golden("h264.mp4")}, {});
    Reader reader = feed.ring()->reader(1);
    for (const double time : {-1.0, 100.0, std::nan(""), HUGE_VAL, -HUGE_VAL})
        CHECK_THROWS(feed.seek(time), "cannot seek");
    CHECK(feed.step() == FeedState::running);
    CHECK_EQ(shown(reader).number, 0);
    Feed timeless({.url = golden("two_sizes.h264")}, {});
    CHECK_THROWS(timeless.seek(0.2), "no time stamps");
    timeless.seek(0);
    CHECK(timeless.step() == FeedState::running);
}

TEST(seek_just_behind_the_last_frame_shows_the_last_frame) {
    for (const char* name : {"h264.mp4", "h264.mkv", "h264.ts"}) {
        Feed feed({.url = golden(name)}, {});
        Reader reader = feed.ring()->reader(1);
        feed.seek(2.9);
        CHECK(feed.step() == FeedState::running);
        CHECK_EQ(shown(reader).number, 59);
        CHECK(feed.step() == FeedState::ended);
        feed.seek(0);  // and back from the end
        CHECK(feed.step() == FeedState::running);
        CHECK_EQ(shown(reader).number, 0);
    }
}

TEST(a_thread_plays_a_file_to_its_end) {
    Feed feed({.url = golden("h264.mp4")}, {.history = 64});
    feed.start();
    CHECK_THROWS(feed.step(), "own thread");
    CHECK_THROWS(feed.seek(0), "Stop the source");
    CHECK_THROWS(feed.start(), "runs already");
    CHECK(eventually([&] { return feed.state() == FeedState::ended; }));
    feed.stop();
    feed.stop();
    CHECK_EQ(feed.ring()->stats().written, 60u);
    feed.seek(0);
    CHECK(feed.step() == FeedState::running);
}

TEST(realtime_keeps_the_pace) {
    Feed feed({.url = golden("variable.mkv")}, {.realtime = true});
    const std::int64_t begin = monotonic_ns();
    feed.start();
    CHECK(eventually([&] { return feed.state() == FeedState::ended; }));
    CHECK(seconds_since(begin) > 0.8);  // the clip lasts 0.9 s
}

TEST(a_file_stopped_at_any_moment_loses_nothing) {
    std::mt19937 random(3);
    for (const bool realtime : {false, true}) {
        for (int round = 0; round < 12; ++round) {
            Feed feed({.url = golden("h264.mp4")}, {.history = 64, .threads = 1 + round % 3, .realtime = realtime});
            Reader reader = feed.ring()->reader(1);
            for (int pauses = 0; pauses < 8; ++pauses) {
                feed.start();
                std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
                feed.stop();
                if (feed.state() == FeedState::running) feed.step();
            }
            while (feed.step() == FeedState::running) {
            }
            CHECK_EQ(feed.ring()->stats().written, 60u);
            for (std::uint64_t n = 0; n < 60; ++n) {
                const Lookup found = reader.get(n);
                CHECK(found);
                CHECK_EQ(clip::number(found.frame.view()), static_cast<int>(n));
                CHECK_EQ(found.frame.info().stamp.flags, 0u);
            }
            CHECK_EQ(feed.stats().stalls, 0u);
        }
    }
}

TEST(readers_on_other_threads_see_whole_frames) {
    Feed feed({.url = golden("h264.mp4")}, {.history = 4, .leases = 9, .threads = 4});
    std::atomic<bool> done{false};
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
        threads.emplace_back([&, reader = feed.ring()->reader(3)] {
            while (!done) {
                const Lookup found = reader.latest();
                if (!found) continue;
                const std::uint64_t sum = clip::checksum(found.frame.view());
                if (clip::number(found.frame.view()) != static_cast<int>(found.frame.info().seq % 60)) ++wrong;
                if (clip::checksum(found.frame.view()) != sum) ++wrong;
            }
        });
    }
    for (int round = 0; round < 5; ++round) {
        while (feed.step() == FeedState::running) {
        }
        feed.seek(0);
    }
    done = true;
    for (std::thread& thread : threads) thread.join();
    CHECK_EQ(wrong.load(), 0);
}

TEST(two_threads_at_once_are_refused_and_not_raced) {
    Feed feed({.url = golden("h264.mp4")}, {});
    std::atomic<int> refused{0}, stepped{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < 200; ++i) {
                try {
                    if (i % 17 == 0) feed.stop();
                    if (i % 5 == 0) feed.seek(0.5);
                    feed.step();
                    ++stepped;
                } catch (const Error&) {
                    ++refused;
                }
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(stepped > 0);
    CHECK_EQ(stepped + refused, 800);
}

TEST(a_live_sender_that_falls_silent_stalls_and_is_opened_again) {
    const Sender sender(clip::bytes_of(golden("h264.ts")), 1000);
    Feed feed({.url = sender.url(), .timeout_s = 0.5}, {.max_backoff_s = 0.1});
    CHECK(feed.info().live);
    Reader reader = feed.ring()->reader(1);
    CHECK_THROWS(feed.seek(0), "is live");
    int frames = 0;
    while (feed.step() == FeedState::running) ++frames;
    CHECK(frames >= 50);  // a parser holds the last ones back
    CHECK(feed.state() == FeedState::stalled);
    CHECK(feed.failure().find("Nothing came from") != std::string::npos);
    CHECK_EQ(feed.stats().stalls, 1u);
    const std::uint64_t before = feed.ring()->stats().written;
    CHECK(eventually([&] { return feed.step() == FeedState::running; }));
    CHECK_EQ(feed.ring()->stats().written, before + 1);
    CHECK((shown(reader).flags & frame_gap_before) != 0);
    CHECK(feed.stats().reconnects >= 1);
    CHECK(sender.served() >= 2);
    CHECK(feed.step() == FeedState::running);
    CHECK_EQ(shown(reader).flags & frame_gap_before, 0u);
}

TEST(a_live_sender_that_hangs_up_is_opened_again_with_back_off) {
    auto sender = std::make_unique<Sender>(clip::bytes_of(golden("h264.ts")), 0.05);
    Feed feed({.url = sender->url(), .timeout_s = 5}, {.max_backoff_s = 0.4});
    feed.start();
    CHECK(eventually([&] { return feed.stats().reconnects >= 2; }));
    CHECK(feed.ring()->stats().gaps >= 1);
    sender.reset();  // nobody listens any more
    CHECK(eventually([&] { return feed.failure().find("No stream could be opened") != std::string::npos; }));
    CHECK(feed.state() == FeedState::stalled);
    feed.stop();
}

TEST(without_reconnect_a_broken_sender_is_a_failure) {
    const Sender sender(clip::bytes_of(golden("h264.ts")), 0.05);
    Feed feed({.url = sender.url(), .timeout_s = 5}, {.reconnect = false});
    feed.start();
    CHECK(eventually([&] { return feed.state() == FeedState::failed; }));
    CHECK(feed.failure().find("broke off") != std::string::npos);
    feed.stop();
    CHECK_EQ(sender.served(), 1);
}

TEST(a_sender_that_never_sends_is_reported_in_time) {
    const Sender silent({}, 1000);
    const std::int64_t begin = monotonic_ns();
    CHECK_THROWS(Feed({.url = silent.url(), .timeout_s = 0.3}, {}), "did not answer within 0.3");
    CHECK(seconds_since(begin) < 20);
    const Sender closing({}, 0);
    CHECK_THROWS(Feed({.url = closing.url(), .timeout_s = 2}, {}), "No stream could be opened");
    const Sender half(std::vector<char>(5000, 'x'), 1000);
    CHECK_THROWS(Feed({.url = half.url(), .timeout_s = 0.3}, {}), "did not answer within 0.3");
}

TEST(stop_interrupts_a_stalled_sender_at_once_and_start_goes_on) {
    const Sender sender(clip::bytes_of(golden("h264.ts")), 1000);
    Feed feed({.url = sender.url(), .timeout_s = 600}, {.max_backoff_s = 0.1});
    Reader reader = feed.ring()->reader(1);
    for (int round = 1; round <= 3; ++round) {
        const std::uint64_t before = feed.ring()->stats().written;
        feed.start();
        CHECK(eventually([&] { return feed.ring()->stats().written >= before + 40; }));
        std::this_thread::sleep_for(std::chrono::milliseconds(10 * round));  // by now it waits for more
        const std::int64_t begin = monotonic_ns();
        feed.stop();
        CHECK(seconds_since(begin) < 60);
        CHECK_EQ(sender.served(), round);
    }
    CHECK_EQ(feed.stats().stalls, 0u);  // our stopping is no fault of the sender's
    CHECK(feed.failure().empty());
    CHECK_EQ(feed.ring()->stats().gaps, 2u);
}

TEST(stop_at_random_moments_of_a_failing_sender) {
    std::mt19937 random(11);
    for (int round = 0; round < 20; ++round) {
        auto sender = std::make_unique<Sender>(clip::bytes_of(golden("h264.ts")), (round % 4) * 0.02);
        Feed feed({.url = sender->url(), .timeout_s = 0.2}, {.threads = 1 + round % 2, .max_backoff_s = 0.02});
        for (int i = 0; i < 3; ++i) {
            feed.start();
            std::this_thread::sleep_for(std::chrono::microseconds(random() % 30'000));
            if (i == 1) sender.reset();
            feed.stop();
        }
    }
}

int main(int argc, char** argv) { return check::run(argc, argv); }
