// libFuzzer over the whole way of a file: open, demux, decode, convert, ring, seek.
//
//   cmake --preset asan && cmake --build --preset asan --target decode_fuzz
//   mkdir corpus && build/asan/tests/fuzz/decode_fuzz -max_total_time=600 -timeout=20 -rss_limit_mb=3000 \
//       -max_len=70000 corpus tests/goldens
//
// The short run is a test: ctest --preset asan -R decode_fuzz. FFmpeg 5.1 of Debian 12 gave no finding so far.
//
// The bytes lie in a memfd, which FFmpeg opens by its path, as it would a file. Three bits of the input's length choose
// threads and seeking. Besides what the sanitizers see, a frame that changes while it is held ends the run, and so does
// an exception that is not one of ours or a message that is not a sentence.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "runtime/error.hpp"
#include "runtime/feed.hpp"
#include "tests/cpp/clip.hpp"

using namespace compass_edge;

namespace {

constexpr int most_frames = 100;

void fail(const std::string& why) {
    std::fprintf(stderr, "decode_fuzz: %s\n", why.c_str());
    std::abort();
}

void play(const std::string& path, std::size_t choice) {
    Feed feed({.url = path, .timeout_s = 2.0},
              {.history = 2, .leases = 3, .max_bytes = std::size_t{64} << 20, .threads = choice % 4 == 3 ? 3 : 1});
    Reader reader = feed.ring()->reader(3);
    clip::Held held(3);
    if (choice % 2 == 1) feed.seek(0.3);
    for (int n = 0; n < most_frames; ++n) {
        if (feed.step() != FeedState::running) break;
        held.drop(2);
        held.take(reader.latest().frame);
        if (choice >= 4 && n == 10) feed.seek(0.05);
    }
    if (held.changed() > 0) fail("a frame changed while it was held");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const int file = memfd_create("compass-fuzz", 0);
    static const std::string path = "/proc/self/fd/" + std::to_string(file);
    if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) fail("memfd");
    try {
        play(path, size % 8);
    } catch (const Error& error) {
        const std::string text = error.what();
        if (text.empty() || text.back() != '.' || text.find('\n') != std::string::npos) fail("no sentence: " + text);
    }
    return 0;
}
