#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace tutti {

/// What leads the jobs of a set: releases them, opens their gates and sees their ends.
enum class Conductor : std::uint8_t {
  Auto,  ///< a GPU where deadlines are at the device, the machine has costs of it, and a GPU can lead the set and
         ///< guarantees its deadlines; else the host
  Gpu,   ///< a thread of a GPU, while the host arms runs ahead; a set that it cannot lead is refused
  Host,  ///< a thread of the host: its pauses are part of every bound
};

/// "auto", "gpu", "host".
[[nodiscard]] constexpr std::string_view to_string(Conductor conductor) {
  switch (conductor) {
    case Conductor::Auto: return "auto";
    case Conductor::Gpu: return "gpu";
    case Conductor::Host: return "host";
  }
  return "";
}

/// The conductor that `to_string` prints so; nothing for any other text.
[[nodiscard]] constexpr std::optional<Conductor> parse_conductor(std::string_view text) {
  for (const Conductor conductor : {Conductor::Auto, Conductor::Gpu, Conductor::Host})
    if (to_string(conductor) == text) return conductor;
  return std::nullopt;
}

/// When a job counts as ended.
enum class DeadlineAt : std::uint8_t {
  Host,    ///< when the host has seen it
  Device,  ///< when its last result is in its destination, as the GPU sees it
};

/// "host", "device".
[[nodiscard]] constexpr std::string_view to_string(DeadlineAt at) {
  return at == DeadlineAt::Device ? "device" : "host";
}

/// What happens to a job that a GPU leads while the consumer of an earlier one still has its buffers.
enum class LateConsumer : std::uint8_t {
  Drop,       ///< the job is dropped
  Overwrite,  ///< the job runs into them, and the consumer is told
};

/// "drop", "overwrite".
[[nodiscard]] constexpr std::string_view to_string(LateConsumer rule) {
  return rule == LateConsumer::Overwrite ? "overwrite" : "drop";
}

/// What happens to a job that a GPU leads while its program has not filled its input.
enum class LateInput : std::uint8_t {
  Drop,   ///< the job is dropped
  Reuse,  ///< the job has the input that its buffers hold, of an earlier one
};

/// "drop", "reuse".
[[nodiscard]] constexpr std::string_view to_string(LateInput rule) {
  return rule == LateInput::Reuse ? "reuse" : "drop";
}

}  // namespace tutti
