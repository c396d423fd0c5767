// A camera that writes its frames into a ring of its own: tasks work on them there, and nothing is copied on the host.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include <tutti/tutti.hpp>

namespace {

constexpr std::uint64_t kFrames = 40;
constexpr std::size_t kSlots = 4, kPixels = 640'000;

int report(const tutti::Error& error) {
  std::fprintf(stderr, "%s\n", error.text().c_str());
  return error.code == tutti::ErrorCode::InvalidInput ? 2 : 3;
}

// On the simulated machine; a DeviceKernel beside it would count on a GPU.
void count_bright(const tutti::KernelLaunch& launch) {
  const std::uint64_t bright = static_cast<std::uint64_t>(
      std::ranges::count_if(launch.reads[0].bytes, [](std::byte pixel) { return pixel > std::byte{127}; }));
  std::memcpy(launch.writes[0].bytes.data(), &bright, sizeof bright);
}

// Frame n has n bright pixels, and lies in slot n modulo 4. A frame that no run has taken yet is offered again.
void work_as_camera(std::vector<std::vector<std::byte>>& ring, const tutti::Trigger& trigger) {
  for (std::uint64_t n = 0; n < kFrames; ++n) {
    std::vector<std::byte>& frame = ring[n % kSlots];
    std::ranges::fill(frame, std::byte{0});
    std::fill_n(frame.begin(), n, std::byte{255});
    while (!trigger.fire()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(6));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto tasks = tutti::TaskSet::load(argc == 2 ? argv[1] : "apps/examples/camera_ring.yaml");
  if (!tasks) return report(tasks.error());
  const auto verdict = tutti::check(*tasks);
  if (!verdict) return report(verdict.error());
  for (const std::string& reason : verdict->reasons) std::printf("%s\n", reason.c_str());
  if (!verdict->admitted) return 1;
  tutti::Kernels kernels;
  if (const auto added = kernels.add("count_bright", count_bright); !added) return report(added.error());

  std::vector<std::vector<std::byte>> ring(kSlots, std::vector<std::byte>(kPixels));
  tutti::TaskProgram inspect;
  for (std::vector<std::byte>& frame : ring) inspect.memory["frame"].emplace_back(frame);
  std::uint64_t right = 0;
  inspect.on_host_step = [&](const tutti::Job& job, std::string_view step) -> tutti::Expected<void> {
    std::uint64_t bright = 0;
    std::memcpy(&bright, job.buffer("result").data(), sizeof bright);
    right += step == "decide" && bright == job.index ? 1 : 0;
    return {};
  };

  tutti::RunOptions options;
  options.backend.clock = tutti::ClockKind::Real;
  options.jobs = kFrames;
  const tutti::Trigger trigger = options.triggers["inspect"];
  std::thread camera([&] { work_as_camera(ring, trigger); });
  const auto record = tutti::run(*verdict->admitted, kernels, {{"inspect", inspect}}, options);
  camera.join();
  if (!record) return report(record.error());
  std::printf("%llu of %zu frames counted right\n", static_cast<unsigned long long>(right), record->jobs.size());
  return right == kFrames ? 0 : 1;
}
