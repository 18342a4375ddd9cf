// Decoder: compressed packets in, pictures out, straight into ring slots.
//
// FFmpeg is given ring slots to decode into: a picture that has a ring format and needs no rotation is never copied.
// The codec may keep reading a published slot as its reference; the slot stays held until it lets go.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "runtime/frame.hpp"
#include "runtime/ring.hpp"
#include "runtime/source.hpp"

struct AVFrame;

namespace compass_edge {

struct DecoderStats {
    std::uint64_t packets = 0;
    std::uint64_t damaged_packets = 0;  // refused by the codec, marked corrupt, or decoded with errors
    std::uint64_t frames = 0;
    std::uint64_t damaged_frames = 0;  // published with frame_damaged
    std::uint64_t direct = 0;          // decoded into their slot
    std::uint64_t copied = 0;          // same format, but the codec used its own memory
    std::uint64_t converted = 0;       // other format or rotated
    std::uint64_t oversize = 0;        // larger than the ring was planned for, dropped: a gap
};

// Who decodes. software: FFmpeg on the CPU. nvdec: an NVIDIA card's or Thor's decoder, by FFmpeg. jetson: a Jetson's
// own, by the FFmpeg of JetPack. The last two were compiled and NOT YET EXECUTED on such a machine; elsewhere they say
// what is missing.
enum class DecodeOn { software, nvdec, jetson };

struct DecoderOptions {
    int direct_slots = 0;         // ring slots the codec may hold; the ring's in_flight must be at least one more
    int threads = 1;              // 1 is the lowest latency; more add FFmpeg's frame threads and their delay
    std::uint32_t source_id = 0;  // written into every frame
    DecodeOn on = DecodeOn::software;
};

// A decoded picture on its way to the ring. Reusable; holds FFmpeg's reference.
class Picture {
  public:
    Picture();
    ~Picture();
    Picture(Picture&&) noexcept;
    Picture& operator=(Picture&&) noexcept;

    bool empty() const;
    void clear();
    std::int64_t pts() const { return stamp_.pts; }
    bool damaged() const { return (stamp_.flags & frame_damaged) != 0; }

  private:
    friend class Decoder;
    struct Release {
        void operator()(AVFrame* frame) const;
    };
    std::unique_ptr<AVFrame, Release> frame_;
    Stamp stamp_;
};

// One thread at a time. Pictures and the codec itself must go before the Decoder does.
class Decoder {
  public:
    // Counts into `stats`, which the caller keeps: a reconnected stream goes on counting with a new Decoder.
    // Throws Error: environment when FFmpeg lacks the codec or the hardware does not answer, usage when it cannot
    // decode this stream.
    Decoder(const Source& source, Writer& writer, const DecoderOptions& options, DecoderStats& stats);
    ~Decoder();

    // False when the codec refused the packet: counted, a gap, and the frames up to the next key frame are flagged.
    bool send(const AVPacket& packet, std::int64_t captured_ns);
    // No more packets will come: receive() gives what the codec still holds.
    void finish();
    // False when the codec wants another packet, or after finish() when it is empty.
    bool receive(Picture& picture);
    // Clears the picture. False when it was dropped because it is larger than a slot.
    bool publish(Picture& picture);
    // After a seek or a lost connection: forgets what the codec holds. Slots already published stay readable.
    void flush();

    struct Codec;  // defined in decoder.cpp; FFmpeg's call-backs need to see it

  private:
    std::int64_t captured_ns(std::int64_t pts) const;
    bool fetch_from_device(AVFrame& frame);
    void note_damage();
    void note_missing();
    bool drop_oversize();

    std::unique_ptr<Codec> codec_;
    Writer& writer_;
    DecoderStats& stats_;
    Stamp blank_;  // what every frame of this stream has in common
    int quarter_turns_;
    bool damaged_ = false;  // until the next clean key frame
    bool joining_ = true;   // the next packet is the first since opening or flushing
    // FFmpeg reorders pictures: their capture times are found again by the packet's pts.
    struct Taken {
        std::int64_t pts = no_pts;
        std::int64_t captured_ns = 0;
    };
    std::array<Taken, 64> taken_{};
    std::size_t next_taken_ = 0;
};

}  // namespace compass_edge
