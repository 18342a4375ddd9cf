#include "runtime/decoder_hardware.hpp"

#include <array>

#include "runtime/error.hpp"

extern "C" {
#include <libavutil/hwcontext.h>
#include <libavutil/pixdesc.h>
}

namespace compass_edge {
namespace {

constexpr const char* use_software = " Decode on the CPU instead: decoder \"software\".";

// The pictures stay on the GPU if it can decode this stream; else the first format of the list is the CPU's own.
AVPixelFormat on_gpu_if_offered(AVCodecContext*, const AVPixelFormat* offered) {
    for (const AVPixelFormat* format = offered; *format != AV_PIX_FMT_NONE; ++format) {
        if (*format == AV_PIX_FMT_CUDA) return *format;
    }
    for (const AVPixelFormat* format = offered; *format != AV_PIX_FMT_NONE; ++format) {
        if ((av_pix_fmt_desc_get(*format)->flags & AV_PIX_FMT_FLAG_HWACCEL) == 0) return *format;
    }
    return AV_PIX_FMT_NONE;
}

bool takes_cuda(const AVCodec& codec) {
    for (int i = 0; const AVCodecHWConfig* way = avcodec_get_hw_config(&codec, i); ++i) {
        const bool by_device = (way->methods & AV_CODEC_HW_CONFIG_METHOD_HW_DEVICE_CTX) != 0;
        if (by_device && way->device_type == AV_HWDEVICE_TYPE_CUDA) return true;
    }
    return false;
}

}  // namespace

const AVCodec* decoder_on(DecodeOn on, AVCodecID id, const std::string& codec) {
    if (on != DecodeOn::jetson) return avcodec_find_decoder(id);
    // NVIDIA's FFmpeg for JetPack calls them nvv4l2dec, the community's nvmpi.
    const std::array<std::string, 2> names{codec + "_nvv4l2dec", codec + "_nvmpi"};
    for (const std::string& name : names) {
        if (const AVCodec* found = avcodec_find_decoder_by_name(name.c_str())) return found;
    }
    throw Error(Fault::environment,
                "A Jetson's decoder was asked for, and FFmpeg here has neither " + names[0] + " nor " + names[1] +
                    ": it is not the FFmpeg of JetPack, or " + codec +
                    " is not among what the hardware decodes. On a Jetson install NVIDIA's FFmpeg and "
                    "compass-edge again." +
                    use_software);
}

void use_nvdec(AVCodecContext& context, const AVCodec& codec) {
    if (!takes_cuda(codec)) {
        throw Error(Fault::environment,
                    std::string("NVDEC was asked for, and FFmpeg here cannot decode ") + codec.name +
                        " with it: it was built without nv-codec-headers, or NVDEC does not know the "
                        "codec." +
                        use_software);
    }
    AVBufferRef* device = nullptr;
    const int code = av_hwdevice_ctx_create(&device, AV_HWDEVICE_TYPE_CUDA, nullptr, nullptr, 0);
    if (code < 0) {
        throw Error(Fault::environment,
                    "NVDEC was asked for, and no NVIDIA driver answers FFmpeg (" + av::message(code) +
                        "). nvidia-smi must list the card, and libnvcuvid be installed." + use_software);
    }
    context.hw_device_ctx = device;  // the context frees it
    context.get_format = on_gpu_if_offered;
    context.extra_hw_frames = 4;  // pictures that are still being fetched
}

}  // namespace compass_edge
