// What FramePatcher decides, on the host's twin of the GPU and on a device that takes its time.
#include "runtime/frame_patcher.hpp"

#include <cstring>
#include <string>
#include <vector>

#include "runtime/error.hpp"
#include "runtime/ring.hpp"
#include "tests/cpp/check.hpp"
#include "tests/cpp/picture.hpp"

using namespace compass_edge;

namespace {

const PatchSpec small{.patch = 4, .merge = 2, .temporal = 1, .min_pixels = 64, .max_pixels = 4096};

// Notes what it is asked, and passes tickets when the test says so.
class SlowDevice final : public PatchDevice {
  public:
    struct Notes {
        std::vector<std::string> calls;
        std::uint64_t done = 0;
        std::size_t pinned = 0;
        bool refuses_upload = false;
    };
    explicit SlowDevice(Notes& notes) : notes_(notes) {}

    PatchGrid grid(int, int) const override { return {2, 2}; }
    void plan(int width, int height, std::size_t bytes) override {
        notes_.calls.push_back("plan " + std::to_string(width) + "x" + std::to_string(height) + " " +
                               std::to_string(bytes));
    }
    bool pin(std::span<const std::uint8_t> memory) override {
        notes_.calls.push_back("pin");
        notes_.pinned += memory.size();
        return true;
    }
    void unpin(std::span<const std::uint8_t> memory) noexcept override { notes_.pinned -= memory.size(); }
    void upload(const std::uint8_t*, std::size_t count) override {
        if (notes_.refuses_upload) throw Error(Fault::task, "no");
        notes_.calls.push_back("upload " + std::to_string(count));
    }
    void patch(const Geometry&, void*, std::size_t) override { notes_.calls.push_back("patch"); }
    std::uint64_t ticket() override { return ++tickets_; }
    bool passed(std::uint64_t ticket) override { return ticket <= notes_.done; }
    void wait() override { notes_.calls.push_back("wait"); }

  private:
    Notes& notes_;
    std::uint64_t tickets_ = 0;
};

struct Stream {
    explicit Stream(PixelFormat format, int width, int height)
        : ring(FrameRing::open({.frame_bytes = packed_layout(format, width, height).bytes, .history = 2, .leases = 4})),
          writer(ring->writer()),
          reader(ring->reader(4)) {}
    std::shared_ptr<FrameRing> ring;
    Writer writer;
    Reader reader;

    std::shared_ptr<const FrameRef> push(const ImageView& view) {
        writer.push(view, {});
        return std::make_shared<const FrameRef>(reader.latest().frame);
    }
};

}  // namespace

TEST(the_twin_gives_the_bits_of_the_host_pass_for_every_format) {
    std::mt19937 random(7);
    for (const PixelFormat format : kFormats) {
        FramePatcher patcher(open_host_device(small, Dtype::f16));
        Preprocessor plain(small, Dtype::f16);
        for (const auto& [width, height] : {std::pair(64, 48), {61, 47}, {64, 48}}) {
            const Picture picture(format, width, height, random);
            Stream stream(format, width, height);
            const auto frame = stream.push(picture.view);
            const PatchGrid grid = patcher.grid(width, height);
            const std::size_t bytes = static_cast<std::size_t>(grid.rows()) * small.columns() * 2;
            std::vector<std::uint8_t> ours(bytes, 0xAA), wanted(bytes, 0xBB);
            patcher.enqueue(frame, ours.data(), bytes);
            plain.run(frame->view(), wanted.data(), bytes);
            CHECK(ours == wanted);
        }
        CHECK_EQ(patcher.stats().frames, 3u);
        CHECK_EQ(patcher.stats().plans, 3u);
    }
}

TEST(a_lease_is_kept_until_the_device_has_read_the_frame) {
    SlowDevice::Notes notes;
    std::mt19937 random(8);
    const Picture picture(PixelFormat::nv12, 32, 32, random);
    Stream stream(PixelFormat::nv12, 32, 32);
    {
        FramePatcher patcher(std::make_unique<SlowDevice>(notes));
        for (int i = 0; i < 3; ++i) patcher.enqueue(stream.push(picture.view), nullptr, 0);
        CHECK_EQ(patcher.held(), 3u);
        CHECK_EQ(stream.reader.leases_out(), 3);
        notes.done = 2;
        patcher.enqueue(stream.push(picture.view), nullptr, 0);
        CHECK_EQ(patcher.held(), 2u);
        CHECK_EQ(stream.reader.leases_out(), 2);
        patcher.finish();
        CHECK_EQ(stream.reader.leases_out(), 0);
        CHECK(notes.calls.back() == "wait");
        CHECK_EQ(notes.pinned, stream.ring->memory().size());
        patcher.enqueue(stream.push(picture.view), nullptr, 0);
    }
    CHECK(notes.calls.back() == "wait");  // a patcher that goes does not free what is being read
    CHECK_EQ(stream.reader.leases_out(), 0);
    CHECK_EQ(notes.pinned, 0u);
}

TEST(only_planes_go_up_once_and_another_size_is_planned_after_what_is_under_way) {
    SlowDevice::Notes notes;
    std::mt19937 random(9);
    Stream stream(PixelFormat::yuv420p, 64, 64);
    FramePatcher patcher(std::make_unique<SlowDevice>(notes));
    const Picture first(PixelFormat::yuv420p, 64, 64, random), second(PixelFormat::yuv420p, 32, 32, random);
    patcher.enqueue(stream.push(first.view), nullptr, 0);
    patcher.enqueue(stream.push(first.view), nullptr, 0);
    patcher.enqueue(stream.push(second.view), nullptr, 0);
    // 64 rows of 64 bytes and twice 32 rows at 64: the last ends after its 32 bytes.
    const std::string large = std::to_string(64 * 64 + 2 * 32 * 64 - 32);
    const std::string less = std::to_string(32 * 64 + 2 * 16 * 64 - 48);
    const std::vector<std::string> wanted{
        "pin",   "wait", "plan 64x64 " + large, "upload " + large, "patch", "upload " + large,
        "patch", "wait", "plan 32x32 " + large, "upload " + less,  "patch"};
    CHECK(notes.calls == wanted);
    CHECK_EQ(patcher.stats().bytes, static_cast<std::uint64_t>(std::stoul(large) * 2 + std::stoul(less)));
}

TEST(a_failed_upload_keeps_the_lease_until_the_device_is_still) {
    SlowDevice::Notes notes;
    std::mt19937 random(10);
    const Picture picture(PixelFormat::gray8, 32, 32, random);
    Stream stream(PixelFormat::gray8, 32, 32);
    FramePatcher patcher(std::make_unique<SlowDevice>(notes));
    notes.refuses_upload = true;
    CHECK_THROWS(patcher.enqueue(stream.push(picture.view), nullptr, 0), "no");
    notes.done = 100;
    notes.refuses_upload = false;
    patcher.enqueue(stream.push(picture.view), nullptr, 0);
    CHECK_EQ(patcher.held(), 2u);
    patcher.finish();
    CHECK_EQ(patcher.held(), 0u);
}

TEST(a_buffer_that_is_too_small_is_refused) {
    std::mt19937 random(11);
    const Picture picture(PixelFormat::rgb24, 32, 32, random);
    Stream stream(PixelFormat::rgb24, 32, 32);
    FramePatcher patcher(open_host_device(small, Dtype::f32));
    std::vector<std::uint8_t> out(16);
    CHECK_THROWS(patcher.enqueue(stream.push(picture.view), out.data(), out.size()), "bytes");
}

TEST(without_cuda_or_a_gpu_it_says_what_is_missing) {
    try {
        open_cuda_device(small, Dtype::f16, nullptr);
        CHECK(built_with_cuda());
    } catch (const Error& error) {
        CHECK(error.fault() == Fault::environment);
        const std::string said = error.what();
        CHECK(said.find(built_with_cuda() ? "none answers here" : "built without CUDA") != std::string::npos);
    }
}

int main(int argc, char** argv) { return check::run(argc, argv); }
