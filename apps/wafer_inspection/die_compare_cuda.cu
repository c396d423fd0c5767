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

/// Compares pixel by pixel: the dies of a column are displaced by different amounts.
template <class Pixel>
__global__ void compare_aligned(const Pixel* __restrict__ part, const Shift* __restrict__ shifts, Pixel* report,
                                std::size_t pixels, int die_rows, DieComparison dies) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t at = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; at < pixels; at += step) {
    const Counterparts distance = counterparts_at(at, die_rows, dies, shifts);
    report[at] =
        excess(part[at], part[at + distance.one], part[at + distance.other], static_cast<Pixel>(dies.threshold));
  }
}

template <class Pixel>
void compare_dies(std::span<const std::uint8_t> part, std::span<const Shift> shifts, std::span<std::uint8_t> report,
                  const DieComparison& dies, cudaStream_t stream) {
  constexpr unsigned kThreads = 256;
  constexpr std::size_t kMostBlocks = 1 << 13;
  const std::size_t pixels = part.size() / sizeof(Pixel);
  const auto blocks = static_cast<unsigned>(std::min((pixels + kThreads - 1) / kThreads, kMostBlocks));
  const int die_rows = static_cast<int>(part.size() / dies.die_row_bytes());
  compare_aligned<<<blocks, kThreads, 0, stream>>>(reinterpret_cast<const Pixel*>(part.data()), shifts.data(),
                                                   reinterpret_cast<Pixel*>(report.data()), pixels, die_rows, dies);
}

void die_compare_cuda(std::span<const std::uint8_t> part, std::span<const Shift> shifts, std::span<std::uint8_t> report,
                      const DieComparison& comparison, cudaStream_t stream) {
  if (!shifts.empty() && comparison.bits == 8)
    return compare_dies<std::uint8_t>(part, shifts, report, comparison, stream);
  if (!shifts.empty()) return compare_dies<std::uint16_t>(part, shifts, report, comparison, stream);
  const std::size_t row = comparison.die_row_bytes();
  const std::uint16_t threshold = comparison.threshold;
  if (comparison.bits == 8) {
    compare_pieces(part, report, row, Quad{threshold * 0x01010101U}, static_cast<std::uint8_t>(threshold), stream);
  } else {
    compare_pieces(part, report, row, Pair{threshold * 0x00010001U}, threshold, stream);
  }
}

/// Threads of a block: a column for each candidate, so that neighbours load neighbouring pixels; rows share the
/// samples.
constexpr dim3 kShiftThreads{96, 8};

/// One block a die. Sums are integers, so their order says nothing.
template <class Pixel>
__global__ void find_shifts(const Pixel* __restrict__ part, Shift* shifts, DieComparison dies) {
  __shared__ unsigned long long sums[kShiftThreads.x];
  const ShiftSamples samples = ShiftSamples::of(dies.die_width, dies.die_height);
  const int candidate = static_cast<int>(threadIdx.x);
  const int row = static_cast<int>(blockIdx.x) / dies.columns, column = static_cast<int>(blockIdx.x) % dies.columns;
  const Pixel* const first = part + dies.left + static_cast<std::ptrdiff_t>(column) * dies.die_width;
  if (threadIdx.y == 0) sums[candidate] = 0;
  __syncthreads();
  if (candidate < shift_candidates(samples.reach)) {
    const Shift shift = shift_candidate(candidate, samples.reach);
    const Pixel* const die =
        first + (static_cast<std::ptrdiff_t>(row) * dies.die_height + shift.y) * dies.width + shift.x;
    unsigned long long sum = 0;
    for (int sample = static_cast<int>(threadIdx.y); sample < samples.count();
         sample += static_cast<int>(kShiftThreads.y)) {
      const std::ptrdiff_t at = samples.offset(sample, dies.width);
      const int difference = static_cast<int>(die[at]) - static_cast<int>(first[at]);
      sum += static_cast<unsigned>(difference < 0 ? -difference : difference);
    }
    atomicAdd(&sums[candidate], sum);
  }
  __syncthreads();
  if (candidate == 0 && threadIdx.y == 0) shifts[blockIdx.x] = row == 0 ? Shift{} : best_shift(sums, samples.reach);
}

void align_dies_cuda(std::span<const std::uint8_t> part, std::span<Shift> shifts, const DieComparison& comparison,
                     cudaStream_t stream) {
  if (shifts.empty()) return;
  const auto dies = static_cast<unsigned>(shifts.size());
  if (comparison.bits == 8)
    find_shifts<<<dies, kShiftThreads, 0, stream>>>(part.data(), shifts.data(), comparison);
  else
    find_shifts<<<dies, kShiftThreads, 0, stream>>>(reinterpret_cast<const std::uint16_t*>(part.data()), shifts.data(),
                                                    comparison);
}

/// @param words  of the report, of 16 bytes; what is behind the last one is read by bytes
template <class Pixel>
__global__ void classify_dirty(const std::uint8_t* __restrict__ report, const std::uint8_t* __restrict__ part,
                               const Shift* __restrict__ shifts, std::size_t bytes, std::uint64_t* list,
                               unsigned long long room, int die_rows, DieComparison dies) {
  const auto* const picture = reinterpret_cast<const Pixel*>(part);
  constexpr std::size_t kPiece = sizeof(uint4), kPixels = kPiece / sizeof(Pixel);
  const auto add = [&](std::size_t at, Pixel level) {
    if (level == 0) return;
    const unsigned long long place = atomicAdd(reinterpret_cast<unsigned long long*>(list), 1ULL);
    if (place < room) list[place + 1] = PixelList::word_of(at, level, class_of(picture, at, die_rows, dies, shifts));
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

void classify_cuda(std::span<const std::uint8_t> report, std::span<const std::uint8_t> part,
                   std::span<const Shift> shifts, std::span<std::uint8_t> list, const DieComparison& comparison,
                   cudaStream_t stream) {
  constexpr unsigned kThreads = 256, kBlocks = 1 << 11;
  auto* const words = reinterpret_cast<std::uint64_t*>(list.data());
  const unsigned long long room = PixelList::room_in(list.size());
  cudaMemsetAsync(words, 0, sizeof *words, stream);
  const int die_rows = static_cast<int>(part.size() / comparison.die_row_bytes());
  const auto enqueue = comparison.bits == 8 ? classify_dirty<std::uint8_t> : classify_dirty<std::uint16_t>;
  enqueue<<<kBlocks, kThreads, 0, stream>>>(report.data(), part.data(), shifts.empty() ? nullptr : shifts.data(),
                                            report.size(), words, room, die_rows, comparison);
}

constexpr DeviceForms kForms{align_dies_cuda, die_compare_cuda, classify_cuda};

}  // namespace

}  // namespace wafer

extern "C" const wafer::DeviceForms* wafer_device_forms_v3() { return &wafer::kForms; }
