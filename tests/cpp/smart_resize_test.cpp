#include "kernels/smart_resize.hpp"

#include "tests/cpp/check.hpp"

using namespace compass_edge;

namespace {

struct Row {
    int width, height, factor;
    long min_pixels, max_pixels;
    int expected_width, expected_height;
};

// Made with smart_resize of transformers 5.22.2.
constexpr Row kRows[] = {
    {1280, 720, 32, 65536, 16777216, 1280, 704},
    {848, 480, 32, 65536, 16777216, 832, 480},
    {640, 400, 32, 65536, 16777216, 640, 384},
    {640, 480, 32, 65536, 16777216, 640, 480},
    {1920, 1080, 32, 65536, 16777216, 1920, 1088},
    {1280, 800, 32, 65536, 16777216, 1280, 800},
    {3840, 2160, 32, 65536, 16777216, 3840, 2176},
    {100, 100, 32, 65536, 16777216, 256, 256},
    {33, 17, 32, 65536, 16777216, 384, 192},
    {1, 1, 32, 65536, 16777216, 256, 256},
    {200, 1, 32, 65536, 16777216, 3648, 32},
    {8000, 40, 32, 65536, 16777216, 8000, 32},
    {10000, 10000, 32, 65536, 16777216, 4096, 4096},
    {4096, 4096, 32, 65536, 16777216, 4096, 4096},
    {4097, 4097, 32, 65536, 16777216, 4096, 4096},
    {640, 480, 28, 3136, 1003520, 644, 476},
    {1280, 720, 28, 3136, 1003520, 1288, 728},
    {1920, 1080, 28, 3136, 1003520, 1316, 728},
    {30, 30, 28, 3136, 1003520, 56, 56},
    {56, 56, 28, 3136, 1003520, 56, 56},
    {70, 42, 28, 3136, 1003520, 56, 56},
    {1000, 14, 28, 3136, 1003520, 476, 28},
    {967, 1248, 28, 200000, 602112, 672, 868},
    {1962, 647, 28, 3136, 250000, 868, 280},
    {1645, 2260, 32, 3136, 250000, 416, 576},
    {2132, 2212, 32, 65536, 250000, 480, 480},
    {435, 1074, 28, 3136, 1003520, 448, 1064},
    {1067, 1120, 28, 3136, 602112, 756, 784},
    {1187, 2575, 32, 3136, 1003520, 672, 1472},
    {1383, 2760, 32, 200000, 250000, 352, 704},
    {729, 1017, 32, 65536, 250000, 416, 576},
    {2244, 1243, 28, 65536, 1003520, 1344, 728},
    {2888, 1295, 28, 65536, 602112, 1148, 504},
    {2454, 1196, 32, 65536, 250000, 704, 320},
};

}  // namespace

TEST(smart_resize_equals_transformers) {
    for (const Row& row : kRows) {
        const PictureSize size = smart_resize(row.width, row.height, row.factor, row.min_pixels, row.max_pixels);
        CHECK_EQ(size.width, row.expected_width);
        CHECK_EQ(size.height, row.expected_height);
    }
}

TEST(ties_round_to_even) {
    CHECK_EQ(nearest_multiple(16, 32), 0);
    CHECK_EQ(nearest_multiple(48, 32), 64);
    CHECK_EQ(nearest_multiple(80, 32), 64);
    CHECK_EQ(nearest_multiple(112, 32), 128);
    CHECK_EQ(nearest_multiple(81, 32), 96);
}

TEST(what_cannot_be_resized_is_refused_with_a_sentence) {
    CHECK_THROWS(smart_resize(2010, 10, 32, 65536, 1 << 24), "aspect ratio of at most 200, got 2010x10");
    CHECK_EQ(smart_resize(2000, 10, 32, 65536, 1 << 24).height, 32);
    CHECK_THROWS(smart_resize(0, 480, 32, 65536, 1 << 24), "got 0x480");
    CHECK_THROWS(smart_resize(640, -1, 32, 65536, 1 << 24), "got 640x-1");
    CHECK_THROWS(smart_resize(640, 480, 0, 65536, 1 << 24), "got factor 0");
    CHECK_THROWS(smart_resize(10, 10, 32, 0, 1 << 24), "Raise min_pixels");
}

int main(int argc, char** argv) { return check::run(argc, argv); }
