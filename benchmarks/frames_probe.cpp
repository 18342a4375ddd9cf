// The native half of frames.py. Prints one JSON object.
//
//   frames_probe bare CLIP         libavformat and libavcodec alone: what decoding costs at least
//   frames_probe ring CLIP         the same clip through Feed into the ring
//   frames_probe allocations CLIP  heap allocations a frame, after warm-up, from packet to patches
//   frames_probe push              latency of Writer::push under four readers
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "kernels/preprocess.hpp"
#include "runtime/av.hpp"
#include "runtime/clock.hpp"
#include "runtime/feed.hpp"
#include "tests/cpp/allocation_counter.hpp"

using namespace compass_edge;

namespace {

double cpu_seconds() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

int bare(const char* path) {
    av::start();
    AVFormatContext* opened = nullptr;
    if (avformat_open_input(&opened, path, nullptr, nullptr) < 0) return 1;
    av::FormatContext container(opened);
    if (avformat_find_stream_info(opened, nullptr) < 0) return 1;
    const int stream = av_find_best_stream(opened, AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
    const AVCodecParameters* parameters = opened->streams[stream]->codecpar;
    const AVCodec* codec = avcodec_find_decoder(parameters->codec_id);
    av::CodecContext context(avcodec_alloc_context3(codec));
    avcodec_parameters_to_context(context.get(), parameters);
    context->thread_count = 1;
    if (avcodec_open2(context.get(), codec, nullptr) < 0) return 1;
    av::Packet packet(av_packet_alloc());
    av::Frame frame(av_frame_alloc());
    long frames = 0;
    const double started = cpu_seconds();
    for (bool more = true; more;) {
        more = av_read_frame(opened, packet.get()) >= 0;
        if (more && packet->stream_index != stream) {
            av_packet_unref(packet.get());
            continue;
        }
        avcodec_send_packet(context.get(), more ? packet.get() : nullptr);
        av_packet_unref(packet.get());
        while (avcodec_receive_frame(context.get(), frame.get()) >= 0) ++frames;
    }
    std::printf("{\"frames\": %ld, \"cpu_s\": %.6f}\n", frames, cpu_seconds() - started);
    return 0;
}

int ring(const char* path) {
    Feed feed({.url = path}, {});
    long frames = 0;
    const double started = cpu_seconds();
    while (feed.step() == FeedState::running) ++frames;
    std::printf("{\"frames\": %ld, \"cpu_s\": %.6f}\n", frames, cpu_seconds() - started);
    return 0;
}

int count_allocations(const char* path) {
    Feed feed({.url = path}, {});
    Reader reader = feed.ring()->reader(2);
    Preprocessor preprocess(PatchSpec{}, Dtype::f16);
    const PatchGrid grid = preprocess.grid(feed.info().width, feed.info().height);
    std::vector<std::uint16_t> out(static_cast<std::size_t>(grid.rows()) * preprocess.spec().columns());
    const auto frame = [&] {
        if (feed.step() != FeedState::running) return false;
        preprocess.run(reader.latest().frame.view(), out.data(), out.size() * sizeof out[0]);
        return true;
    };
    for (int warm_up = 0; warm_up < 30; ++warm_up) frame();
    long frames = 0;
    const Counted counted = allocations([&] {
        while (frame()) ++frames;
    });
    std::printf("{\"ours\": %.4f, \"ffmpeg\": %.4f}\n", static_cast<double>(counted.ours) / static_cast<double>(frames),
                static_cast<double>(counted.foreign) / static_cast<double>(frames));
    return 0;
}

int push() {
    constexpr int frames = 20000;
    const Layout layout = packed_layout(PixelFormat::yuv420p, 640, 480);
    auto frame_ring = FrameRing::open({.frame_bytes = layout.bytes});
    std::vector<std::uint8_t> bytes(layout.bytes, 128);
    const ImageView view = view_of(layout.geometry, bytes.data());
    std::atomic<bool> done{false};
    std::vector<std::thread> readers;
    for (int i = 0; i < 4; ++i) {
        readers.emplace_back([&] {
            Reader reader = frame_ring->reader(2);
            while (!done.load()) {
                const Lookup newest = reader.latest();
                std::this_thread::sleep_for(std::chrono::microseconds(200));
            }
        });
    }
    Writer writer = frame_ring->writer();
    std::vector<double> microseconds(frames);
    for (double& sample : microseconds) {
        const std::int64_t started = monotonic_ns();
        writer.push(view, {.captured_ns = started});
        sample = static_cast<double>(monotonic_ns() - started) / 1e3;
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    done.store(true);
    for (std::thread& reader : readers) reader.join();
    std::sort(microseconds.begin(), microseconds.end());
    std::printf("{\"p50_us\": %.3f, \"p99_us\": %.3f, \"p999_us\": %.3f}\n", microseconds[frames / 2],
                microseconds[frames * 99 / 100], microseconds[frames * 999 / 1000]);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string command = argc > 1 ? argv[1] : "";
    if (command == "push") return push();
    if (argc == 3 && command == "bare") return bare(argv[2]);
    if (argc == 3 && command == "ring") return ring(argv[2]);
    if (argc == 3 && command == "allocations") return count_allocations(argv[2]);
    std::fprintf(stderr, "usage: frames_probe bare|ring|allocations CLIP | push\n");
    return 2;
}
