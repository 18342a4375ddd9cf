#include "runtime/source_error.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/av.hpp"
#include "runtime/error.hpp"

namespace compass_edge {

namespace {

namespace fs = std::filesystem;

bool starts_like_mp4(const std::string& path) {
    char head[12] = {};
    std::ifstream(path, std::ios::binary).read(head, sizeof head);
    return std::string(head + 4, 4) == "ftyp";
}

}  // namespace

void explain_failed_open(const SourceOptions& options, int code, bool timed_out) {
    const std::string quoted = "'" + options.url + "'";
    if (timed_out) {
        throw Error(Fault::task,
                    quoted + " did not answer within " + std::to_string(options.timeout_s) +
                        " s. Check that the camera or the sender runs and can be reached, or raise timeout_s.");
    }
    if (options.is_device()) {
        throw Error(Fault::usage, "No frames could be had from the camera " + quoted + ": " + av::message(code) +
                                      ". `v4l2-ctl --list-devices` shows which devices exist; reading one needs the "
                                      "group `video`.");
    }
    if (options.is_live()) {
        throw Error(Fault::task, "No stream could be opened at " + quoted + ": " + av::message(code) +
                                     ". Check the address and that the sender runs.");
    }
    std::error_code ignored;
    const fs::file_status status = fs::status(options.url, ignored);
    if (options.scheme().empty()) {
        if (!fs::exists(status)) throw Error(Fault::usage, "There is no file " + quoted + ". Check the path.");
        if (fs::is_directory(status)) {
            throw Error(Fault::usage, quoted + " is a folder; expected a video file. Name one file in it.");
        }
        if (fs::is_regular_file(status) && fs::file_size(options.url, ignored) == 0) {
            throw Error(Fault::usage, quoted + " is empty (0 bytes); expected a video. Copy or record it again.");
        }
        if (code == AVERROR(EACCES)) throw Error(Fault::usage, quoted + " may not be read by this user.");
        if (fs::is_regular_file(status) && starts_like_mp4(options.url)) {
            throw Error(Fault::usage, quoted +
                                          " is an MP4 without a readable index (moov): it is damaged, or its "
                                          "recording or copying was cut off. Copy or record it again.");
        }
    }
    throw Error(Fault::usage, quoted + " is not a video that FFmpeg can read: " + av::message(code) +
                                  ". Expected a video file such as mp4, mkv, avi or mjpeg.");
}

}  // namespace compass_edge
