#include "runtime/decoder.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/av.hpp"
#include "runtime/converter.hpp"
#include "runtime/decoder_hardware.hpp"
#include "runtime/error.hpp"

extern "C" {
#include <libavutil/hwcontext.h>
#include <libavutil/imgutils.h>
}

namespace compass_edge {

namespace {

constexpr int longest_side = 1 << 15;  // that packed_layout takes
constexpr int longest_b_run = 16;      // B-frames in a row, of h264 and hevc

// A ring slot in FFmpeg's hands. claimed: FFmpeg's threads take and return slots concurrently.
struct LentSlot {
    WriteSlot slot;
    std::atomic<bool> claimed{false};
};

}  // namespace

struct Decoder::Codec {
    av::CodecContext context;
    Writer* writer = nullptr;
    std::vector<LentSlot> lent;
    Converter converter;
    av::Frame from_device;  // a picture that hardware decoded, while it is fetched

    int get_buffer(AVCodecContext* codec, AVFrame* frame, int flags);
    LentSlot* lend();
    LentSlot* slot_of(const AVFrame& frame);
};

namespace {

void return_slot(void* opaque, std::uint8_t*) {
    auto* lent = static_cast<LentSlot*>(opaque);
    lent->slot.reset();
    lent->claimed.store(false, std::memory_order_release);  // pairs with the exchange in lend()
}

}  // namespace

LentSlot* Decoder::Codec::lend() {
    for (LentSlot& entry : lent) {
        // Acquire pairs with the release in return_slot: the old handle is gone.
        if (entry.claimed.exchange(true, std::memory_order_acquire)) continue;
        entry.slot = writer->acquire();
        if (entry.slot) return &entry;
        entry.claimed.store(false, std::memory_order_release);
        return nullptr;
    }
    return nullptr;
}

// Asked of the picture's own buffer: the other slots may be changing hands on FFmpeg's threads meanwhile.
LentSlot* Decoder::Codec::slot_of(const AVFrame& frame) {
    if (frame.buf[0] == nullptr || lent.empty()) return nullptr;
    void* owner = av_buffer_get_opaque(frame.buf[0]);
    const std::less<const void*> before;
    const bool ours = !before(owner, lent.data()) && before(owner, lent.data() + lent.size());
    return ours ? static_cast<LentSlot*>(owner) : nullptr;
}

// FFmpeg asks for memory to decode one picture into. Falls back to FFmpeg's own pool whenever the slot will not do.
int Decoder::Codec::get_buffer(AVCodecContext* codec, AVFrame* frame, int flags) {
    const auto format = static_cast<AVPixelFormat>(frame->format);
    if (!ring_format(format)) return avcodec_default_get_buffer2(codec, frame, flags);
    // The codec writes whole macroblocks and, with SIMD, past row ends: its own rule says how much room it needs.
    int width = frame->width;
    int height = frame->height;
    int alignment[AV_NUM_DATA_POINTERS] = {};
    avcodec_align_dimensions2(codec, &width, &height, alignment);
    int strides[4] = {};
    std::ptrdiff_t plane_strides[4] = {};
    std::size_t plane_bytes[4] = {};
    if (av_image_fill_linesizes(strides, format, static_cast<int>(round_up(static_cast<std::size_t>(width), 128))) <
        0) {
        return avcodec_default_get_buffer2(codec, frame, flags);
    }
    for (int plane = 0; plane < 4; ++plane) {
        plane_strides[plane] = strides[plane] =
            static_cast<int>(round_up(static_cast<std::size_t>(strides[plane]), row_alignment));
    }
    if (av_image_fill_plane_sizes(plane_bytes, format, height, plane_strides) < 0) {
        return avcodec_default_get_buffer2(codec, frame, flags);
    }
    constexpr std::size_t slack = 128;  // some codecs' SIMD reads and writes a little beyond the last row
    std::size_t total = slack;
    for (const std::size_t bytes : plane_bytes) total += round_up(bytes, row_alignment);
    if (total > writer->frame_bytes()) return avcodec_default_get_buffer2(codec, frame, flags);
    LentSlot* entry = lend();
    if (entry == nullptr) return avcodec_default_get_buffer2(codec, frame, flags);
    std::uint8_t* base = entry->slot.data();
    // Read-only to FFmpeg means: some codecs draw the next picture over the last one when they think that nobody else
    // looks at it; this makes them take a new slot instead.
    frame->buf[0] = av_buffer_create(base, entry->slot.bytes(), return_slot, entry, AV_BUFFER_FLAG_READONLY);
    if (frame->buf[0] == nullptr) {
        return_slot(entry, base);
        return AVERROR(ENOMEM);
    }
    for (int plane = 0; plane < 4 && plane_bytes[plane] > 0; ++plane) {
        frame->data[plane] = base;
        frame->linesize[plane] = strides[plane];
        base += round_up(plane_bytes[plane], row_alignment);
    }
    frame->extended_data = frame->data;
    return 0;
}

Picture::Picture() : frame_(av_frame_alloc()) {}
Picture::~Picture() = default;
Picture::Picture(Picture&&) noexcept = default;
Picture& Picture::operator=(Picture&&) noexcept = default;
void Picture::Release::operator()(AVFrame* frame) const { av_frame_free(&frame); }
bool Picture::empty() const { return frame_->buf[0] == nullptr; }
void Picture::clear() { av_frame_unref(frame_.get()); }

Decoder::Decoder(const Source& source, Writer& writer, const DecoderOptions& options, DecoderStats& stats)
    : codec_(std::make_unique<Codec>()),
      writer_(writer),
      stats_(stats),
      blank_{.time_base_num = source.info().time_base_num,
             .time_base_den = source.info().time_base_den,
             .source = options.source_id},
      quarter_turns_(source.info().rotation / 90) {
    const AVCodecParameters& parameters = source.parameters();
    const AVCodec* codec = decoder_on(options.on, parameters.codec_id, source.info().codec);
    if (parameters.codec_id == AV_CODEC_ID_NONE) {
        throw Error(Fault::usage, "The video in '" + source.options().url +
                                      "' is of a kind that FFmpeg does not recognise: "
                                      "it is damaged, or must be re-encoded as h264.");
    }
    if (codec == nullptr) {
        throw Error(Fault::environment, "FFmpeg here has no decoder for " + source.info().codec + " (" +
                                            source.options().url + "). Re-encode the video as h264.");
    }
    codec_->writer = &writer;
    codec_->context.reset(avcodec_alloc_context3(codec));
    AVCodecContext& context = *codec_->context;
    if (avcodec_parameters_to_context(&context, &parameters) < 0) {
        throw Error(Fault::usage, "The stream parameters of '" + source.options().url + "' cannot be used.");
    }
    context.opaque = codec_.get();
    context.pkt_timebase = {blank_.time_base_num, blank_.time_base_den};
    context.thread_count = options.threads;
    context.max_pixels = av::max_pixels;
    if (options.on == DecodeOn::nvdec) use_nvdec(context, *codec);
    context.flags |= AV_CODEC_FLAG_OUTPUT_CORRUPT;  // a damaged picture comes out, flagged, instead of vanishing
    if ((codec->capabilities & AV_CODEC_CAP_DR1) != 0 && quarter_turns_ == 0) {
        codec_->lent = std::vector<LentSlot>(static_cast<std::size_t>(std::max(options.direct_slots, 0)));
        context.get_buffer2 = [](AVCodecContext* c, AVFrame* frame, int flags) {
            return static_cast<Codec*>(c->opaque)->get_buffer(c, frame, flags);
        };
    }
    const int code = avcodec_open2(&context, codec, nullptr);
    if (code < 0) {
        throw Error(Fault::usage, "The " + source.info().codec + " stream of '" + source.options().url +
                                      "' cannot be decoded: " + av::message(code) + ".");
    }
}

// The codec first: it returns its slots to codec_->lent.
Decoder::~Decoder() { codec_->context.reset(); }

void Decoder::note_damage() {
    ++stats_.damaged_packets;
    damaged_ = true;
}

// The codec refused a packet: its picture will not come.
void Decoder::note_missing() {
    note_damage();
    writer_.mark_gap();
}

bool Decoder::send(const AVPacket& packet, std::int64_t captured_ns) {
    ++stats_.packets;
    // Joined between key frames, some codecs invent what they refer to and say nothing.
    if (std::exchange(joining_, false) && (packet.flags & AV_PKT_FLAG_KEY) == 0) damaged_ = true;
    const std::int64_t pts = packet.pts != AV_NOPTS_VALUE ? packet.pts : packet.dts;
    taken_[next_taken_] = {pts, captured_ns};
    next_taken_ = (next_taken_ + 1) % taken_.size();
    const int code = avcodec_send_packet(codec_->context.get(), &packet);
    if (code < 0) {
        note_missing();
    } else if ((packet.flags & AV_PKT_FLAG_CORRUPT) != 0) {
        note_damage();
    }
    return code >= 0;
}

void Decoder::finish() { avcodec_send_packet(codec_->context.get(), nullptr); }

bool Decoder::receive(Picture& picture) {
    AVFrame& frame = *picture.frame_;
    for (;;) {
        const int code = avcodec_receive_frame(codec_->context.get(), &frame);
        if (code == AVERROR(EAGAIN) || code == AVERROR_EOF) return false;
        if (code < 0 || (frame.hw_frames_ctx != nullptr && !fetch_from_device(frame))) {
            note_missing();
            continue;
        }
        break;
    }
    const bool broken = (frame.flags & AV_FRAME_FLAG_CORRUPT) != 0 || frame.decode_error_flags != 0;
    if (broken) {
        note_damage();
    } else if (av::is_key(frame)) {
        damaged_ = false;
    }
    Stamp& stamp = picture.stamp_;
    stamp = blank_;
    stamp.pts = frame.best_effort_timestamp != AV_NOPTS_VALUE ? frame.best_effort_timestamp : no_pts;
    stamp.flags = damaged_ ? std::uint32_t{frame_damaged} : 0u;
    stamp.captured_ns = captured_ns(stamp.pts);
    return true;
}

// The picture is in the hardware's memory: it comes into a ring slot, in the hardware's own format (NV12), and nothing
// is converted.
bool Decoder::fetch_from_device(AVFrame& frame) {
    av::Frame& there = codec_->from_device;
    if (!there) there.reset(av_frame_alloc());
    av_frame_move_ref(there.get(), &frame);
    frame.format = reinterpret_cast<const AVHWFramesContext*>(there->hw_frames_ctx->data)->sw_format;
    frame.width = there->width;
    frame.height = there->height;
    const bool fetched = codec_->get_buffer(codec_->context.get(), &frame, 0) >= 0 &&
                         av_hwframe_transfer_data(&frame, there.get(), 0) >= 0 &&
                         av_frame_copy_props(&frame, there.get()) >= 0;
    av_frame_unref(there.get());
    if (!fetched) av_frame_unref(&frame);
    return fetched;
}

// A frame must not look fresher than it is: without a time stamp to go by, it is as old as the oldest packet that the
// codec may still have been holding. A frame waits for the B-frames shown before it, and then for the codec's delay.
std::int64_t Decoder::captured_ns(std::int64_t pts) const {
    const AVCodecContext& context = *codec_->context;
    const int reordering = context.has_b_frames > 0 ? longest_b_run + context.has_b_frames : 0;
    const auto delay = static_cast<std::size_t>(std::max(reordering + context.thread_count, 1));
    std::int64_t oldest = 0;
    for (std::size_t back = 1; back <= taken_.size(); ++back) {
        const Taken& taken = taken_[(next_taken_ + taken_.size() - back) % taken_.size()];
        if (taken.captured_ns == 0) break;
        if (pts != no_pts && taken.pts == pts) return taken.captured_ns;
        if (back <= delay) oldest = taken.captured_ns;
    }
    return oldest;
}

bool Decoder::publish(Picture& picture) {
    const std::unique_ptr<Picture, void (*)(Picture*)> done(&picture, [](Picture* p) { p->clear(); });
    AVFrame& frame = *picture.frame_;
    if (std::max(frame.width, frame.height) > longest_side) return drop_oversize();
    Layout layout = upright_layout(frame, quarter_turns_);
    LentSlot* lent = codec_->slot_of(frame);
    if (lent != nullptr && !lent->slot.published()) {  // a codec may show the same picture twice: the second is a copy
        const std::uint8_t* base = lent->slot.data();
        for (int plane = 0; plane < plane_count(layout.geometry.format); ++plane) {
            layout.geometry.offset[plane] = static_cast<std::uint32_t>(frame.data[plane] - base);
            layout.geometry.stride[plane] = frame.linesize[plane];
        }
        writer_.publish(lent->slot, layout.geometry, picture.stamp_);
        ++stats_.direct;
    } else {
        WriteSlot slot = layout.bytes <= writer_.frame_bytes() ? writer_.acquire() : WriteSlot{};
        if (!slot) return drop_oversize();
        codec_->converter.convert(frame, quarter_turns_, layout, slot.data());
        writer_.publish(slot, layout.geometry, picture.stamp_);
        const bool same = quarter_turns_ == 0 && ring_format(frame.format) == layout.geometry.format;
        ++(same ? stats_.copied : stats_.converted);
    }
    ++stats_.frames;
    if ((picture.stamp_.flags & frame_damaged) != 0) ++stats_.damaged_frames;
    return true;
}

bool Decoder::drop_oversize() {
    ++stats_.oversize;
    writer_.mark_gap();
    return false;
}

void Decoder::flush() {
    avcodec_flush_buffers(codec_->context.get());
    taken_.fill({});
    damaged_ = false;
    joining_ = true;
}

}  // namespace compass_edge
