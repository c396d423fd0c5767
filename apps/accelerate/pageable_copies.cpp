#include "apps/accelerate/pageable_copies.hpp"

#include <algorithm>
#include <cstdio>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

namespace tutti::internal::cuda {
namespace {

using Steady = std::chrono::steady_clock;

/// Contexts whose copies failed before all go the program's own way: what fails so often is not understood here.
constexpr int kMostFailures = 4;

/// MADV_POPULATE_READ and MADV_POPULATE_WRITE, which older C libraries do not name.
constexpr int kPopulateRead = 22, kPopulateWrite = 23;

/// The driver's calls of this thread end no capture of another thread meanwhile.
class BesideCaptures {
 public:
  explicit BesideCaptures(const CopyDriver& driver) : driver_(driver) { driver_.exchange_capture_mode(&mode_); }
  BesideCaptures(const BesideCaptures&) = delete;  // it restores one mode once
  BesideCaptures& operator=(const BesideCaptures&) = delete;
  ~BesideCaptures() { driver_.exchange_capture_mode(&mode_); }

 private:
  const CopyDriver& driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

/// What the driver knows of an address.
struct Known {
  unsigned type = 0;  // 0: nothing, ordinary memory
  int device = -1;
  bool managed = false;
  CUdeviceptr begin = 0;  // of its allocation on a device
  std::size_t bytes = 0;
};

std::optional<Known> known_of(const CopyDriver& driver, const void* address) {
  Known known;
  unsigned managed = 0;
  std::array attributes{CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                        CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                        CU_POINTER_ATTRIBUTE_RANGE_SIZE};
  std::array<void*, 5> values{&known.type, &known.device, &managed, &known.begin, &known.bytes};
  if (driver.attributes_of(attributes.size(), attributes.data(), values.data(),
                           reinterpret_cast<CUdeviceptr>(address)) != CUDA_SUCCESS)
    return std::nullopt;
  known.managed = managed != 0;
  return known;
}

/// Whether the program may access a page in this way; before Linux 5.14 nobody knows.
bool may_access(std::uintptr_t address, CopyDirection direction) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const auto populate = [page](std::uintptr_t where, int access) {
    return madvise(reinterpret_cast<void*>(where / page * page), page, access) == 0;
  };
  static const bool is_known = populate(reinterpret_cast<std::uintptr_t>(&page), kPopulateRead);
  return !is_known || populate(address, direction == CopyDirection::Up ? kPopulateRead : kPopulateWrite);
}

/// Whether the program has all of this memory: the driver makes an error of memory that was given back, and a thread of
/// ours would end the program. Pages that are there and forbid the access are found at the ends.
bool is_there(const void* begin, std::size_t bytes, CopyDirection direction) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(begin), last = first + bytes - 1;
  const std::uintptr_t start = first / page * page;
  return msync(reinterpret_cast<void*>(start), last - start + 1, MS_ASYNC) == 0 && may_access(first, direction) &&
         may_access(last, direction);
}

bool is_ordinary(const CopyDriver& driver, const void* begin, std::size_t bytes) {
  for (const void* address : {begin, static_cast<const void*>(static_cast<const std::byte*>(begin) + bytes - 1)}) {
    const auto known = known_of(driver, address);
    if (!known || known->type != 0 || known->managed) return false;
  }
  return true;
}

/// Whether all of these bytes are on the device, in one allocation: of a copy that is too long none is written.
bool is_on(CUdevice device, const CopyDriver& driver, const void* begin, std::size_t bytes) {
  const auto known = known_of(driver, begin);
  if (!known || known->type != CU_MEMORYTYPE_DEVICE || known->managed || known->device != device) return false;
  const auto first = reinterpret_cast<CUdeviceptr>(begin);
  return first >= known->begin && first - known->begin <= known->bytes &&
         bytes <= known->bytes - (first - known->begin);
}

bool is_captured(const CopyDriver& driver, CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return driver.is_capturing(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

}  // namespace

std::optional<CopyDirection> PageableCopies::direction_of(const CopyCall& call) const {
  const std::size_t least = std::min(settings_.up_from, settings_.down_from);
  if (call.bytes < least || call.to == nullptr || call.from == nullptr) return std::nullopt;
  CUdevice device = 0;
  if (driver_.current_device(&device) != CUDA_SUCCESS) return std::nullopt;
  const auto goes = [&](CopyDirection direction, const void* there, const void* here) {
    return is_on(device, driver_, there, call.rows.span(call.bytes)) && is_ordinary(driver_, here, call.bytes) &&
           is_there(here, call.bytes, direction);
  };
  if (call.may_go_up && call.bytes >= settings_.up_from && goes(CopyDirection::Up, call.to, call.from))
    return CopyDirection::Up;
  if (call.may_go_down && call.bytes >= settings_.down_from && goes(CopyDirection::Down, call.from, call.to))
    return CopyDirection::Down;
  return std::nullopt;
}

bool PageableCopies::copy(const CopyCall& call, CopyDirection direction) {
  if (off_ || settings_.mode != CopySettings::Mode::On) return false;
  const auto start = Steady::now();
  CUcontext context = nullptr, of_stream = nullptr;
  if (is_captured(driver_, call.stream) || driver_.current_context(&context) != CUDA_SUCCESS ||
      driver_.context_of(call.stream, &of_stream) != CUDA_SUCCESS || context != of_stream)
    return false;
  DeviceCopier* const copier = copier_of(context, call.bytes);
  if (copier == nullptr || (call.waits && !copier->may_wait())) return false;
  const BesideCaptures beside(driver_);
  const CopyEnd end =
      is_sample(call, direction) ? copy_sample(*copier, call, direction) : copy_all(*copier, call, direction);
  if (end == CopyEnd::Failed) give_up(context);
  if (end != CopyEnd::Done) return false;
  const std::lock_guard lock(mutex_);
  counts_of(direction).fast.add(call.bytes, Steady::now() - start);
  return true;
}

CopyEnd PageableCopies::copy_all(DeviceCopier& copier, const CopyCall& call, CopyDirection direction) {
  const bool up = direction == CopyDirection::Up;
  auto* const host = static_cast<std::byte*>(up ? const_cast<void*>(call.from) : call.to);
  const auto device = reinterpret_cast<CUdeviceptr>(up ? call.to : call.from);
  const CopyEnd end = copier.copy(direction, host, device, call.bytes, call.stream, call.rows);
  if (end != CopyEnd::Done || !up || !call.waits) return end;
  return driver_.wait_for(call.stream) == CUDA_SUCCESS ? end : CopyEnd::Failed;
}

/// The first long copy of a direction, and one of many later ones.
bool PageableCopies::is_sample(const CopyCall& call, CopyDirection direction) {
  constexpr std::size_t kLong = std::size_t{32} << 20;
  constexpr std::uint64_t kEvery = 64;
  if (call.bytes < kLong || call.rows.width != 0) return false;
  const std::lock_guard lock(mutex_);
  return counts_of(direction).long_copies++ % kEvery == 0;
}

/// By the driver alone, until all is copied.
bool PageableCopies::copy_plainly(const CopyCall& call, CopyDirection direction) const {
  const CUresult status =
      direction == CopyDirection::Up
          ? driver_.up(reinterpret_cast<CUdeviceptr>(call.to), call.from, call.bytes, call.stream)
          : driver_.down(call.to, reinterpret_cast<CUdeviceptr>(call.from), call.bytes, call.stream);
  return status == CUDA_SUCCESS && driver_.wait_for(call.stream) == CUDA_SUCCESS;
}

CopyEnd PageableCopies::copy_sample(DeviceCopier& copier, const CopyCall& call, CopyDirection direction) {
  constexpr std::size_t kShare = 8;
  const std::size_t part = call.bytes / kShare;
  CopyCall begin = call;
  begin.bytes = part;
  if (driver_.wait_for(call.stream) != CUDA_SUCCESS) return CopyEnd::Failed;
  const auto start = Steady::now();
  if (!copy_plainly(begin, direction)) return CopyEnd::Failed;
  const auto middle = Steady::now();
  CopyCall rest = call;
  rest.to = static_cast<std::byte*>(call.to) + part;
  rest.from = static_cast<const std::byte*>(call.from) + part;
  rest.bytes -= part;
  rest.waits = true;
  const CopyEnd end = copy_all(copier, rest, direction);
  if (end != CopyEnd::Done) return end;
  const std::lock_guard lock(mutex_);
  counts_of(direction).sampled_plain.add(part, middle - start);
  counts_of(direction).sampled_fast.add(rest.bytes, Steady::now() - middle);
  return end;
}

/// The copier of a context, made once enough was copied there; null before, and where it cannot be made.
DeviceCopier* PageableCopies::copier_of(CUcontext context, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  Place& place = places_[context];
  place.seen += bytes;
  if (place.copier || place.given_up || place.seen < settings_.after) return place.copier.get();
  const BesideCaptures beside(driver_);
  place.copier = DeviceCopier::make(driver_, settings_.copier);
  place.given_up = place.copier == nullptr;
  return place.copier.get();
}

/// The context's copier has failed: the context may be gone, and another one may come to have its address. Its memory
/// is kept, since the engine may be writing there.
void PageableCopies::give_up(CUcontext context) {
  const std::lock_guard lock(mutex_);
  static_cast<void>(places_[context].copier.release());
  if (++failures_ >= kMostFailures) off_ = true;
}

void PageableCopies::count_plain(CopyDirection direction, std::size_t bytes, std::chrono::nanoseconds time) {
  const std::lock_guard lock(mutex_);
  counts_of(direction).plain.add(bytes, time);
}

/// A child that forked before the first copier was made has lost nothing. What its parent has counted is the parent's.
void PageableCopies::after_fork(bool is_child) {
  if (is_child && !places_.empty()) off_ = true;
  if (is_child) counts_ = {};
  is_child_ = is_child_ || is_child;
  mutex_.unlock();
}

std::string PageableCopies::report() {
  const std::lock_guard lock(mutex_);
  const auto copied = [](const DirectionCounts& counts) { return counts.fast.calls + counts.plain.calls > 0; };
  if (is_child_ && std::ranges::none_of(counts_, copied)) return "";
  std::string line = "{\"pid\": " + std::to_string(getpid());
  const auto add = [&](const std::string& name, const CopyCounts& counts) {
    // Whole numbers alone: the program may have set a locale that writes 0,5.
    constexpr long long kPerSecond = 1'000'000'000;
    const long long ns = counts.time.count();
    char text[160];
    std::snprintf(text, sizeof text, ", \"%s\": {\"calls\": %llu, \"bytes\": %llu, \"seconds\": %lld.%09lld}",
                  name.c_str(), static_cast<unsigned long long>(counts.calls),
                  static_cast<unsigned long long>(counts.bytes), ns / kPerSecond, ns % kPerSecond);
    line += text;
  };
  for (const CopyDirection direction : kCopyDirections) {
    const std::string word(to_string(direction));
    const DirectionCounts& counts = counts_of(direction);
    add(word, counts.fast);
    add("plain_" + word, counts.plain);
    add("sampled_" + word, counts.sampled_fast);
    add("sampled_plain_" + word, counts.sampled_plain);
  }
  return line + "}\n";
}

}  // namespace tutti::internal::cuda
