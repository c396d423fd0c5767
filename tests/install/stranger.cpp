// A program of somebody else: two tasks and a kernel of its own, checked and run.
#include <cstdio>

#include <tutti/tutti.hpp>

// Built as a program, and as a plugin that another program loads.
extern "C" __attribute__((visibility("default"))) int run_stranger(const char* path) {
  if (const auto fits = tutti::check_version(); !fits) return std::printf("%s\n", fits.error().text().c_str()), 2;
  const auto tasks = tutti::TaskSet::load(path);
  if (!tasks) return std::printf("%s\n", tasks.error().text().c_str()), 2;
  const auto verdict = tutti::check(*tasks);
  if (!verdict || !verdict->admitted) return 1;
  std::size_t launches = 0;
  tutti::Kernels kernels;
  if (!kernels.add("threshold", [&](const tutti::KernelLaunch&) { ++launches; })) return 2;
  tutti::RunOptions options;
  options.jobs = 12;
  const auto record = tutti::run(*verdict->admitted, kernels, {}, options);
  if (!record) return std::printf("%s\n", record.error().text().c_str()), 3;
  std::printf("%zu jobs, %zu launches\n", record->jobs.size(), launches);
  return 0;
}

#ifndef STRANGER_IS_PLUGIN
int main(int, char** argv) { return run_stranger(argv[1]); }
#endif
