// What the decoder's tests share: the goldens, the number each picture shows, and frames held to see that they stay.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "runtime/feed.hpp"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
extern "C" __attribute__((used, visibility("default"))) const char* __tsan_default_options() {
    return "suppressions=" COMPASS_EDGE_GOLDENS "/../cpp/tsan.supp";
}
#endif
#endif

namespace compass_edge::clip {

inline std::string golden(const std::string& name) { return std::string(COMPASS_EDGE_GOLDENS) + "/" + name; }

// compass_edge.frames.clip.read_number: 16 black or white cells along the upper edge, lowest bit first.
inline int number(const ImageView& view) {
    const int cell = view.width / 16;
    const int row = std::max(8, view.height / 16) / 2;
    const int step = view.format == PixelFormat::rgb24 ? 3 : view.format == PixelFormat::yuyv ? 2 : 1;
    int shown = 0;
    for (int bit = 0; bit < 16; ++bit) {
        if (view.data[0][row * view.stride[0] + (bit * cell + cell / 2) * step] > 128) shown |= 1 << bit;
    }
    return shown;
}

inline std::uint64_t checksum(const ImageView& view) {
    std::uint64_t sum = 14695981039346656037ull;  // FNV-1a
    for (int plane = 0; plane < plane_count(view.format); ++plane) {
        const PlaneExtent extent = plane_extent(view.format, plane, view.width, view.height);
        for (int y = 0; y < extent.rows; ++y) {
            const std::uint8_t* row = view.data[plane] + y * view.stride[plane];
            for (int x = 0; x < extent.row_bytes; ++x) sum = (sum ^ row[x]) * 1099511628211ull;
        }
    }
    return sum;
}

// Holds the frames it is given, oldest out first, and counts those whose pixels changed meanwhile.
class Held {
  public:
    explicit Held(std::size_t most) : most_(most) {}
    ~Held() { drop(0); }
    void take(FrameRef frame) {
        drop(most_ - 1);
        const std::uint64_t sum = checksum(frame.view());
        frames_.push_back({std::move(frame), sum});
    }
    void drop(std::size_t keep) {
        while (frames_.size() > keep) {
            if (checksum(frames_.front().frame.view()) != frames_.front().sum) ++changed_;
            frames_.erase(frames_.begin());
        }
    }
    int changed() {
        drop(0);
        return changed_;
    }

  private:
    struct Entry {
        FrameRef frame;
        std::uint64_t sum;
    };
    std::size_t most_;
    std::vector<Entry> frames_;
    int changed_ = 0;
};

inline std::vector<char> bytes_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// A file in the temporary folder that goes with its object.
class TemporaryFile {
  public:
    TemporaryFile(const std::string& name, const std::vector<char>& bytes)
        : path_((std::filesystem::temp_directory_path() / ("compass-" + std::to_string(getpid()) + "-" + name))
                    .string()) {
        std::ofstream(path_, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    }
    ~TemporaryFile() { std::remove(path_.c_str()); }
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

}  // namespace compass_edge::clip
