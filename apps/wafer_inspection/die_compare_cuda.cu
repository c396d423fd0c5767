#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "apps/wafer_inspection/die_compare_cuda.hpp"
#include "apps/wafer_inspection/pixel_list.hpp"

namespace wafer {
namespace {

/// Four pixels of 8 bits side by side in a word: one at a time, arithmetic would take longer than memory does.
struct Quad {
  std::uint32_t word;
};
__device__ Quad min(Quad a, Quad b) { return {__vminu4(a.word, b.word)}; }
__device__ Quad max(Quad a, Quad b) { return {__vmaxu4(a.word, b.word)}; }
/// @pre no pixel of `b` is above that of `a`, which would borrow from its neighbour.
__device__ Quad operator-(Quad a, Quad b) { return {a.word - b.word}; }
__device__ Quad operator|(Quad a, Quad b) { return {a.word | b.word}; }

/// Two pixels of 16 bits side by side in a word.
struct Pair {
  std::uint32_t word;
};
__device__ Pair min(Pair a, Pair b) { return {__vminu2(a.word, b.word)}; }
__device__ Pair max(Pair a, Pair b) { return {__vmaxu2(a.word, b.word)}; }
/// @pre as for a `Quad`.
__device__ Pair operator-(Pair a, Pair b) { return {a.word - b.word}; }
__device__ Pair operator|(Pair a, Pair b) { return {a.word | b.word}; }

/// What a thread loads and stores at once.
template <class Pixels, int count>
struct alignas(count * sizeof(Pixels)) Piece {
  Pixels pixels[count];
};

/// @pre pieces are aligned and do not reach from one die row into the next.
template <class Pixels, int count>
__global__ void compare(const std::uint8_t* __restrict__ part, std::uint8_t* __restrict__ report, std::size_t bytes,
                        std::size_t die_row_bytes, Pixels threshold) {
  using Loaded = Piece<Pixels, count>;
  const auto load = [](const std::uint8_t* at) { return *reinterpret_cast<const Loaded*>(at); };
  const std::size_t first = (std::size_t{blockIdx.x} * blockDim.x + threadIdx.x) * sizeof(Loaded);
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x * sizeof(Loaded);
  for (std::size_t offset = first; offset < bytes; offset += step) {
    const Counterparts distance = counterparts_of(offset, bytes, die_row_bytes);
    const Loaded own = load(part + offset);
    const Loaded one = load(part + offset + distance.one);
    const Loaded other = load(part + offset + distance.other);
    Loaded result;
#pragma unroll
    for (int i = 0; i < count; ++i) result.pixels[i] = excess(own.pixels[i], one.pixels[i], other.pixels[i], threshold);
    *reinterpret_cast<Loaded*>(report + offset) = result;
  }
}

template <class Pixels, int count>
void launch(std::span<const std::uint8_t> part, std::span<std::uint8_t> report, std::size_t die_row_bytes,
            Pixels threshold, cudaStream_t stream) {
  constexpr unsigned kThreads = 256;
  constexpr std::size_t kMostBlocks = 1 << 13;  // several for every place on the GPU; the rest is their loop
  constexpr std::size_t kBlockBytes = kThreads * sizeof(Piece<Pixels, count>);
  const auto blocks = static_cast<unsigned>(std::min((part.size() + kBlockBytes - 1) / kBlockBytes, kMostBlocks));
  compare<Pixels, count>
      <<<blocks, kThreads, 0, stream>>>(part.data(), report.data(), part.size(), die_row_bytes, threshold);
}

/// Compares in pieces of 16 bytes, of words or of single pixels: the largest for which all pieces are aligned.
/// @param words  the threshold, in every pixel of a word
template <class Words, class Pixel>
void compare_pieces(std::span<const std::uint8_t> part, std::span<std::uint8_t> report, std::size_t die_row_bytes,
                    Words words, Pixel threshold, cudaStream_t stream) {
  const auto all =
      reinterpret_cast<std::uintptr_t>(part.data()) | reinterpret_cast<std::uintptr_t>(report.data()) | die_row_bytes;
  if (all % 16 == 0) {
    launch<Words, 4>(part, report, die_row_bytes, words, stream);
  } else if (all % sizeof(Words) == 0) {
    launch<Words, 1>(part, report, die_row_bytes, words, stream);
  } else {
    launch<Pixel, 1>(part, report, die_row_bytes, threshold, stream);
  }
}

void die_compare_cuda(std::span<const std::uint8_t> part, std::span<std::uint8_t> report,
                      const DieComparison& comparison, cudaStream_t stream) {
  const std::size_t row = comparison.die_row_bytes();
  const std::uint16_t threshold = comparison.threshold;
  if (comparison.bits == 8) {
    compare_pieces(part, report, row, Quad{threshold * 0x01010101U}, static_cast<std::uint8_t>(threshold), stream);
  } else {
    compare_pieces(part, report, row, Pair{threshold * 0x00010001U}, threshold, stream);
  }
}

/// @param words  of the report, of 16 bytes; what is behind the last one is read by bytes
template <class Pixel>
__global__ void list_dirty(const std::uint8_t* __restrict__ report, std::size_t bytes, std::uint64_t* list,
                           unsigned long long room) {
  constexpr std::size_t kPiece = sizeof(uint4), kPixels = kPiece / sizeof(Pixel);
  const auto add = [&](std::size_t at, Pixel level) {
    if (level == 0) return;
    const unsigned long long place = atomicAdd(reinterpret_cast<unsigned long long*>(list), 1ULL);
    if (place < room) list[place + 1] = PixelList::word_of(at, level);
  };
  const std::size_t thread = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::size_t threads = std::size_t{gridDim.x} * blockDim.x;
  const std::size_t pieces = reinterpret_cast<std::uintptr_t>(report) % kPiece == 0 ? bytes / kPiece : 0;
  for (std::size_t piece = thread; piece < pieces; piece += threads) {
    const uint4 loaded = reinterpret_cast<const uint4*>(report)[piece];
    if ((loaded.x | loaded.y | loaded.z | loaded.w) == 0) continue;
    for (std::size_t i = 0; i < kPixels; ++i)
      add(piece * kPixels + i, reinterpret_cast<const Pixel*>(report)[piece * kPixels + i]);
  }
  for (std::size_t at = pieces * kPixels + thread; at < bytes / sizeof(Pixel); at += threads)
    add(at, reinterpret_cast<const Pixel*>(report)[at]);
}

void list_pixels_cuda(std::span<const std::uint8_t> report, std::span<std::uint8_t> list, int bits,
                      cudaStream_t stream) {
  constexpr unsigned kThreads = 256, kBlocks = 1 << 11;
  auto* const words = reinterpret_cast<std::uint64_t*>(list.data());
  const unsigned long long room = PixelList::room_in(list.size());
  cudaMemsetAsync(words, 0, sizeof *words, stream);
  const auto enqueue = bits == 8 ? list_dirty<std::uint8_t> : list_dirty<std::uint16_t>;
  enqueue<<<kBlocks, kThreads, 0, stream>>>(report.data(), report.size(), words, room);
}

constexpr DeviceForms kForms{die_compare_cuda, list_pixels_cuda};

}  // namespace

}  // namespace wafer

extern "C" const wafer::DeviceForms* wafer_device_forms_v2() { return &wafer::kForms; }
