// A camera, a process of its own, fills a ring in shared memory. Tasks work on its frames there: nothing is copied on
// the host.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <thread>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <tutti/tutti.hpp>
#include <unistd.h>

namespace {

constexpr std::uint64_t kFrames = 40;
constexpr std::size_t kSlots = 4, kPixels = 640'000;

struct Ring {
  std::atomic<bool> is_running;  // a run takes the frames
  std::byte frames[kSlots][kPixels];
};

int report(const tutti::Error& error) {
  std::fprintf(stderr, "%s\n", error.text().c_str());
  return error.code == tutti::ErrorCode::InvalidInput ? 2 : 3;
}

// Maps the object of that name, zeros where it is new; null: there is no shared memory.
Ring* map_ring(const std::string& name) {
  const int file = shm_open(name.c_str(), O_CREAT | O_RDWR, 0600);
  if (file < 0 || ftruncate(file, sizeof(Ring)) != 0) return nullptr;
  void* const memory = mmap(nullptr, sizeof(Ring), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return memory == MAP_FAILED ? nullptr : static_cast<Ring*>(memory);
}

// The other process. Frame n has n bright pixels, and lies in slot n modulo 4.
int work_as_camera(const std::string& name) {
  Ring* const ring = map_ring(name);
  const auto trigger = tutti::SharedTrigger::open("camera-ring");
  if (ring == nullptr || !trigger) return 3;
  for (int waits = 0; !ring->is_running; ++waits) {
    if (waits == 10'000) return 3;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the run begins at once
  for (std::uint64_t n = 0; n < kFrames; ++n) {
    const std::span<std::byte> frame = ring->frames[n % kSlots];
    std::ranges::fill(frame, std::byte{0});
    std::fill_n(frame.begin(), n, std::byte{255});
    if (!trigger->fire()) return 3;
    std::this_thread::sleep_for(std::chrono::milliseconds(6));
  }
  return 0;
}

// On the simulated machine; a DeviceKernel beside it would count on a GPU.
void count_bright(const tutti::KernelLaunch& launch) {
  const std::uint64_t bright = static_cast<std::uint64_t>(
      std::ranges::count_if(launch.reads[0].bytes, [](std::byte pixel) { return pixel > std::byte{127}; }));
  std::memcpy(launch.writes[0].bytes.data(), &bright, sizeof bright);
}

int inspect_frames(const char* file, Ring& ring) {
  const auto tasks = tutti::TaskSet::load(file);
  if (!tasks) return report(tasks.error());
  const auto verdict = tutti::check(*tasks);
  if (!verdict) return report(verdict.error());
  for (const std::string& reason : verdict->reasons) std::printf("%s\n", reason.c_str());
  if (!verdict->admitted) return 1;
  tutti::Kernels kernels;
  if (const auto added = kernels.add("count_bright", count_bright); !added) return report(added.error());

  tutti::TaskProgram inspect;
  for (auto& frame : ring.frames) inspect.memory["frame"].emplace_back(frame);
  std::uint64_t right = 0;
  inspect.on_start = [&](const tutti::KeptBuffers&) { ring.is_running = true; };
  inspect.on_host_step = [&](const tutti::Job& job, std::string_view step) -> tutti::Expected<void> {
    std::uint64_t bright = 0;
    std::memcpy(&bright, job.buffer("result").data(), sizeof bright);
    right += step == "decide" && bright == job.index ? 1 : 0;
    return {};
  };
  tutti::RunOptions options;
  options.backend.clock = tutti::ClockKind::Real;
  options.backend.waiting = tutti::WaitKind::Block;  // leaves the cores to others
  options.jobs = kFrames;
  const auto record = tutti::run(*verdict->admitted, kernels, {{"inspect", inspect}}, options);
  if (!record) return report(record.error());
  if (record->fatal) return report(*record->fatal);
  std::printf("%llu of %zu frames counted right\n", static_cast<unsigned long long>(right), record->jobs.size());
  return right == kFrames ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = "/tutti-camera-ring." + std::to_string(getpid());
  Ring* const ring = map_ring(name);
  if (ring == nullptr) return std::perror("shared memory"), 3;
  const pid_t camera = fork();  // before anything else; as well a program of its own, that knows the name
  if (camera == 0) _exit(work_as_camera(name));
  const int code = inspect_frames(argc == 2 ? argv[1] : "apps/examples/camera_ring.yaml", *ring);
  if (code != 0 && !ring->is_running) kill(camera, SIGTERM);  // there are no frames to take
  waitpid(camera, nullptr, 0);
  shm_unlink(name.c_str());
  return code;
}
