// Opening: what a source says of itself, and one clear sentence for everything that is not a video.
#include "runtime/source.hpp"

#include <sys/stat.h>

#include "runtime/error.hpp"
#include "tests/cpp/check.hpp"
#include "tests/cpp/clip.hpp"

using namespace compass_edge;
using clip::golden;
using clip::TemporaryFile;

namespace {

void open(const std::string& url) { Source source({.url = url}); }

// One sentence or two: it ends in a full stop, names the file and has no line break.
void check_refused(const std::string& url, const std::string& part) {
    try {
        open(url);
    } catch (const Error& error) {
        const std::string text = error.what();
        if (text.find(part) == std::string::npos)
            check::fail(__FILE__, __LINE__, "no '" + part + "' in '" + text + "'");
        CHECK(text.find(url) != std::string::npos);
        CHECK(text.find('\n') == std::string::npos);
        CHECK_EQ(text.back(), '.');
        CHECK(error.fault() == Fault::usage);
        return;
    }
    check::fail(__FILE__, __LINE__, "'" + url + "' was opened");
}

std::vector<char> text(const std::string& words) { return {words.begin(), words.end()}; }

}  // namespace

TEST(a_source_describes_its_stream) {
    const Source source({.url = golden("h264.mp4")});
    const StreamInfo& info = source.info();
    CHECK_EQ(info.codec, std::string("h264"));
    CHECK_EQ(info.pixel_format, std::string("yuv420p"));
    CHECK_EQ(info.width, 128);
    CHECK_EQ(info.height, 96);
    CHECK_EQ(info.frames, 60);
    CHECK_EQ(info.rotation, 0);
    CHECK(info.frame_rate > 29.9 && info.frame_rate < 30.1);
    CHECK(info.duration_s > 1.9 && info.duration_s < 2.1);
    CHECK(!info.live);
}

TEST(a_rotated_stream_is_described_upright) {
    const Source source({.url = golden("rotated.mp4")});
    CHECK_EQ(source.info().rotation, 90);
    CHECK_EQ(source.info().width, 96);
    CHECK_EQ(source.info().height, 128);
}

TEST(packets_come_until_the_end_and_the_end_stays) {
    Source source({.url = golden("h264.mkv")});
    int packets = 0;
    while (source.read() == ReadState::packet) ++packets;
    CHECK_EQ(packets, 60);
    CHECK(source.read() == ReadState::end);
    source.reopen();
    CHECK(source.read() == ReadState::packet);
}

TEST(what_is_no_video_gets_one_sentence) {
    check_refused("/nowhere/clip.mp4", "There is no file");
    check_refused(std::filesystem::temp_directory_path().string(), "is a folder");
    const TemporaryFile empty("empty.mp4", {});
    check_refused(empty.path(), "0 bytes");
    const TemporaryFile words("words.txt", text("Nothing to see here, only words.\n"));
    check_refused(words.path(), "is not a video");
    const TemporaryFile noise("noise.bin", std::vector<char>(4096, 0));
    check_refused(noise.path(), "is not a video");
    std::vector<char> cut = clip::bytes_of(golden("h264.mp4"));
    cut.resize(cut.size() / 2);
    const TemporaryFile cut_mp4("cut.mp4", cut);
    check_refused(cut_mp4.path(), "without a readable index");
    CHECK_THROWS(open(""), "needs a URL");
    CHECK_THROWS(open(std::string("a\0b", 3)), "zero byte");
}

TEST(sound_and_cover_pictures_are_no_video) {
    std::string wave(
        "RIFF\x64\x10\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0"
        "data\x40\x10\0\0",
        44);
    wave.append(4160, '\0');
    const TemporaryFile sound("sound.wav", text(wave));
    check_refused(sound.path(), "no video stream");
}

TEST(a_playlist_opens_nothing_else) {
    const TemporaryFile list(
        "list.m3u8", text("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n" + golden("h264.ts") + "\n#EXT-X-ENDLIST\n"));
    CHECK_THROWS(open(list.path()), "list.m3u8");
    const TemporaryFile joined("list.ffconcat", text("ffconcat version 1.0\nfile '" + golden("h264.mp4") + "'\n"));
    CHECK_THROWS(open(joined.path()), "list.ffconcat");
    const TemporaryFile remote("remote.m3u8",
                               text("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\nhttp://127.0.0.1:9/a.ts\n"));
    CHECK_THROWS(open(remote.path()), "remote.m3u8");
    // Whoever wants one says so.
    const TemporaryFile wanted("wanted.ffconcat", text("ffconcat version 1.0\nfile '" + golden("h264.mp4") + "'\n"));
    Source source({.url = wanted.path(), .options = {{"protocol_whitelist", "file"}, {"safe", "0"}}});
    CHECK(source.read() == ReadState::packet);
}

TEST(odd_file_names_are_paths_and_not_protocols) {
    for (const char* name :
         {"12:30 cup.mp4", "a space.mp4", "caf\xc3\xa9 \xe6\x9d\xaf.mp4", "http:x.mp4", "100%d.mp4"}) {
        const TemporaryFile file(name, clip::bytes_of(golden("h264.mp4")));
        Source source({.url = file.path()});
        CHECK(source.read() == ReadState::packet);
    }
}

TEST(options_are_checked) {
    CHECK_THROWS(Source({.url = golden("h264.mp4"), .timeout_s = 0}), "timeout_s");
    CHECK_THROWS(Source({.url = golden("h264.mp4"), .timeout_s = -1}), "timeout_s");
    CHECK_THROWS(Source({.url = golden("h264.mp4"), .format = "nonsense"}), "no input format 'nonsense'");
    CHECK_THROWS(Source({.url = golden("h264.mp4"), .options = {{"nonsense", "1"}}}), "no option 'nonsense'");
    CHECK_THROWS(Source({.url = golden("h264.mp4"), .format = "matroska"}), "is");
}

TEST(a_camera_or_a_host_that_is_not_there_says_so) {
    CHECK_THROWS(open("/dev/video97"), "No frames could be had from the camera");
    CHECK_THROWS(open("tcp://127.0.0.1:1"), "No stream could be opened");
    CHECK_THROWS(open("nonsense://somewhere"), "No stream could be opened");
}

TEST(a_file_that_vanishes_before_reopening_breaks_and_does_not_crash) {
    auto file = std::make_unique<TemporaryFile>("vanishing.mp4", clip::bytes_of(golden("h264.mp4")));
    Source source({.url = file->path()});
    file.reset();
    CHECK_THROWS(source.reopen(), "There is no file");
    CHECK(source.read() == ReadState::broken);
    CHECK(!source.seek(0));
}

int main(int argc, char** argv) { return check::run(argc, argv); }
