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
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "kernels/preprocess.hpp"
#include "runtime/av.hpp"
#include "runtime/clock.hpp"
#include "runtime/feed.hpp"

// Every allocation of our C++ code goes through operator new, every one of FFmpeg through the malloc family.
static std::atomic<long> news{0};
static std::atomic<long> mallocs{0};

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void* malloc(std::size_t bytes) {
    ++mallocs;
    return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
    ++mallocs;
    return __libc_calloc(count, bytes);
}
void* realloc(void* old, std::size_t bytes) {
    ++mallocs;
    return __libc_realloc(old, bytes);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
    ++mallocs;
    *out = __libc_memalign(alignment, bytes);
    return *out == nullptr ? 12 : 0;
}
}

void* operator new(std::size_t bytes) {
    ++news;
    void* memory = __libc_malloc(bytes);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

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

int allocations(const char* path) {
    Feed feed({.url = path}, {});
    Reader reader = feed.ring()->reader(2);
    Preprocessor preprocess(PatchSpec{}, Dtype::f16);
    const PatchGrid grid = preprocess.grid(feed.info().width, feed.info().height);
    std::vector<std::uint16_t> out(static_cast<std::size_t>(grid.rows()) * preprocess.spec().columns());
    long frames = 0;
    long warm_news = 0;
    long warm_mallocs = 0;
    constexpr long warm_up = 30;
    while (feed.step() == FeedState::running) {
        const Lookup newest = reader.latest();
        preprocess.run(newest.frame.view(), out.data(), out.size() * sizeof(std::uint16_t));
        if (++frames == warm_up) {
            warm_news = news;
            warm_mallocs = mallocs;
        }
    }
    const double measured = static_cast<double>(frames - warm_up);
    std::printf("{\"ours\": %.4f, \"ffmpeg\": %.4f}\n", static_cast<double>(news - warm_news) / measured,
                static_cast<double>(mallocs - warm_mallocs) / measured);
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
    if (argc == 3 && command == "allocations") return allocations(argv[2]);
    std::fprintf(stderr, "usage: frames_probe bare|ring|allocations CLIP | push\n");
    return 2;
}
