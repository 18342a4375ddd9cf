// Which of FFmpeg's decoders works on which hardware, and what is missing where it does not.
#pragma once

#include <string>

#include "runtime/av.hpp"
#include "runtime/decoder.hpp"

namespace compass_edge {

// FFmpeg's decoder for the codec, null when it has none at all. Throws Error (environment) when the hardware's own is
// missing.
const AVCodec* decoder_on(DecodeOn on, AVCodecID id, const std::string& codec);

// Makes the context decode on the NVIDIA GPU, a stream that it cannot take on the CPU. Throws Error (environment) when
// FFmpeg was built without it or no driver answers.
void use_nvdec(AVCodecContext& context, const AVCodec& codec);

}  // namespace compass_edge
