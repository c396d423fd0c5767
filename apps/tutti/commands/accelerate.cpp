#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/tutti/commands/command.hpp"
#include "apps/tutti/commands/preloading.hpp"
#include "apps/tutti/reports/copies_report.hpp"
#include "runtime/host/cuda_library.hpp"

namespace tutti::internal {
namespace {

constexpr const char* kCopyLibrary = "libtutti_copy.so";

struct AccelerateOptions {
  std::vector<std::string> program;
  int gpu = 0;
  int threads = 0;  // 0: as measured
};

/// A file of its own in the temporary folder, gone when it goes.
class ReportFile {
 public:
  ReportFile() {
    std::error_code unknown;
    path_ = std::filesystem::temp_directory_path(unknown) / "tutti-copies-XXXXXX";
    if (const int file = mkstemp(path_.data()); file >= 0) close(file);
  }
  ReportFile(const ReportFile&) = delete;  // it is removed once
  ReportFile& operator=(const ReportFile&) = delete;
  ~ReportFile() { unlink(path_.c_str()); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Runs a function in a process of its own, which leaves nothing behind on the GPU, and hands its result on.
template <class Result>
std::optional<Result> in_own_process(const std::function<std::optional<Result>()>& work) {
  static_assert(std::is_trivially_copyable_v<Result>);
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return std::nullopt;
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const auto result = work();
    const bool written = result && write(ends[1], &*result, sizeof *result) == static_cast<ssize_t>(sizeof *result);
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  Result result{};
  const bool there = child > 0 && read(ends[0], &result, sizeof result) == static_cast<ssize_t>(sizeof result);
  close(ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  return there ? std::optional(result) : std::nullopt;
}

void set(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }

/// What the measurement says, for the library; variables that the user has set stay.
void set_environment(const PageableMeasurement& found) {
  const auto unless_set = [](const char* name, const std::string& value) { setenv(name, value.c_str(), 0); };
  unless_set("TUTTI_COPY_THREADS", std::to_string(found.choice.threads));
  unless_set("TUTTI_COPY_BUFFER", std::to_string(found.buffer.count));
  for (const auto& [direction, word] : {std::pair(CopyDirection::Up, "UP"), {CopyDirection::Down, "DOWN"}}) {
    const PageableDirection& one = found.of(direction);
    unless_set(fmt::format("TUTTI_COPY_{}", word).c_str(), std::string(to_string(one.how)));
    unless_set(fmt::format("TUTTI_COPY_{}_FROM", word).c_str(), std::to_string(one.from.count));
  }
}

/// Ends as the program has: its exit code, or 128 and the signal that ended it, as shells have it.
int exit_code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

/// Signals that are meant for the program. An interrupt of the terminal reaches it anyway.
constexpr std::array kPassedOn{SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

std::atomic<pid_t> signalled{0};  // a handler of signals sees nothing else

extern "C" void pass_on(int signal) { kill(signalled, signal); }

/// Holds signals back until the program is there to have them. Those that are ignored, as under nohup, stay so.
class SignalsForProgram {
 public:
  SignalsForProgram() {
    sigset_t passed;
    sigemptyset(&passed);
    for (const int signal : kPassedOn) sigaddset(&passed, signal);
    sigprocmask(SIG_BLOCK, &passed, &before_);
  }
  /// In the program, before its first instruction.
  void leave_to_program() const {
    sigprocmask(SIG_SETMASK, &before_, nullptr);
    prctl(PR_SET_PDEATHSIG, SIGTERM);  // where this process is killed
  }
  /// In this process.
  void pass_on_to(pid_t program) const {
    signalled = program;
    for (const int signal : kPassedOn) {
      struct sigaction action {};
      if (sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
      action = {};
      action.sa_handler = pass_on;
      sigaction(signal, &action, nullptr);
    }
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t before_{};
};

Expected<int> run_program(const std::vector<std::string>& program) {
  std::vector<char*> arguments;
  for (const std::string& argument : program) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const SignalsForProgram signals;
  const pid_t child = fork();
  if (child < 0) return machine_error("the system starts no further process");
  if (child == 0) {
    signals.leave_to_program();
    execvp(arguments.front(), arguments.data());
    programs::print_error(fmt::format("tutti accelerate: {}: {}", program.front(), std::strerror(errno)));
    _exit(errno == ENOENT ? 127 : 126);
  }
  // An interrupt of the terminal reaches the program, too: it decides.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGQUIT, SIG_IGN);
  signals.pass_on_to(child);
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return machine_error("the program cannot be waited for");
  return exit_code_of(status);
}

int accelerate(const AccelerateOptions& options) {
  const auto library = path_of_library(kCopyLibrary);
  if (!library) return report_error(library.error());
  if (library->string().find_first_of(" :") != std::string::npos)
    return report_error(
        {ErrorCode::Machine,
         fmt::format("the loader takes no path with a space or a colon, such as {}; install {} elsewhere",
                     library->string(), kCopyLibrary),
         {}});
  if (const std::string reason = why_not_preloaded(options.program.front()); !reason.empty())
    programs::print_remark(fmt::format(
        "tutti accelerate: {} {}, and takes no library by LD_PRELOAD; its copies go on as they are, those of programs "
        "that it starts are accelerated",
        options.program.front(), reason));
  const auto measured = in_own_process<PageableMeasurement>([&]() -> std::optional<PageableMeasurement> {
    const auto cuda = open_cuda_library();
    const auto found = cuda ? (*cuda)->measure_pageable(options.gpu) : tl::unexpected(cuda.error());
    if (!found) programs::print_remark("tutti accelerate: " + found.error().text() + "; copies go on as they are");
    return found ? std::optional(*found) : std::nullopt;
  });
  if (measured) {
    programs::print_remark(measurement_text(*measured));
    set_environment(*measured);
  } else {
    set("TUTTI_COPY", "off");
  }
  if (options.threads > 0) set("TUTTI_COPY_THREADS", std::to_string(options.threads));
  const ReportFile report;
  set("TUTTI_COPY_REPORT", report.path());
  const char* const others = std::getenv("LD_PRELOAD");
  set("LD_PRELOAD",
      others == nullptr || *others == '\0' ? library->string() : fmt::format("{}:{}", library->string(), others));
  const auto code = run_program(options.program);
  if (!code) return report_error(code.error());
  if (measured) programs::print_remark(copies_text(report.path()));
  return *code;
}

}  // namespace

void add_accelerate(programs::CommandLine& program) {
  programs::CommandLine command = program.command(
      "accelerate", "runs a program whose copies from and to ordinary memory go at the speed of the link");
  command.footer(
      "Example:\n  tutti accelerate -- python3 train.py --epochs 3\n"
      "Measures the host for some 2 s, then runs the program with libtutti_copy.so preloaded: large copies of "
      "ordinary\n"
      "memory go through pinned buffers, several threads at a time, with the same results. It serves CUDA runtimes,\n"
      "shared or static (nvcc's default), and what calls the driver (Numba, CuPy, JAX, Julia); a program that is "
      "linked\n"
      "statically as a whole takes no library, and copies as before.\n"
      "At the end standard error has bytes, time and factor. TUTTI_COPY=off switches it off, =stats only counts.\n"
      "SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are handed on to the program.\n"
      "The exit code is that of the program, or 128 and the signal that ended it.");
  auto options = std::make_shared<AccelerateOptions>();
  command.add("program", &options->program, "the program and its arguments, behind --").required();
  command.add("--gpu", &options->gpu, "that is measured, as CUDA counts").not_negative().shows_default();
  command.add("--threads", &options->threads, "that copy for each GPU; left out: as the measurement says")
      .between(1, 64);
  command.runs([options] { return accelerate(*options); });
}

}  // namespace tutti::internal
