#include "apps/lab/measuring/load.hpp"

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tutti::internal {
namespace {

/// The words with which a program is such a load until it is ended; none where no program is.
std::vector<std::string> program_for(LoadKind kind) {
  const std::string cores = fmt::to_string(usable_cores());
  if (kind == LoadKind::Cpu) return {"stress-ng", "--cpu", cores, "--timeout", "0"};
  if (kind == LoadKind::Memory) return {"stress-ng", "--stream", cores, "--timeout", "0"};
  // One process with threads: no child of it is left over when it is killed.
  if (kind == LoadKind::Hackbench) return {"hackbench", "-T", "-l", "1000000000"};
  return {};
}

/// The file of a program in PATH; empty where there is none.
std::string find_program(const std::string& name) {
  const char* const path = std::getenv("PATH");
  std::string rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::size_t colon = rest.find(':');
    const std::string file = rest.substr(0, colon) + "/" + name;
    if (file.front() == '/' && access(file.c_str(), X_OK) == 0) return file;
    rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
  }
  return "";
}

/// The rest of a child between fork and the program; only what a signal handler may call.
[[noreturn]] void become(const char* file, char* const* words, int none, pid_t parent) {
  setpgid(0, 0);  // Ctrl-C is for the parent, which ends the whole group
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(none, stream);
  execv(file, words);
  _exit(127);
}

bool ends_within(pid_t process, std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (waitpid(process, nullptr, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
  return true;
}

}  // namespace

std::unique_ptr<LoadProgram> LoadProgram::start(const std::vector<std::string>& words) {
  if (words.empty()) return nullptr;
  const std::string file = find_program(words.front());
  if (file.empty()) return nullptr;
  std::vector<std::string> copies = words;
  std::vector<char*> arguments;
  for (std::string& word : copies) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int none = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (none < 0) return nullptr;
  const pid_t parent = getpid();
  const pid_t process = fork();
  if (process == 0) become(file.c_str(), arguments.data(), none, parent);
  close(none);
  if (process < 0) return nullptr;
  setpgid(process, process);  // whichever of the two is first
  return std::unique_ptr<LoadProgram>(new LoadProgram(process));
}

LoadProgram::~LoadProgram() {
  constexpr std::chrono::milliseconds kPatience{500};
  kill(-process_, SIGTERM);
  if (ends_within(process_, kPatience)) {
    kill(-process_, SIGKILL);  // what it left behind
    return;
  }
  kill(-process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

bool LoadProgram::running() const {
  siginfo_t ended{};
  return waitid(P_PID, static_cast<id_t>(process_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == 0;
}

Load::Load(LoadKind kind, bool programs) {
  constexpr std::chrono::milliseconds kSettle{200};
  if (kind == LoadKind::None) return;
  if (programs) {
    const std::vector<std::string> words = program_for(kind);
    program_ = LoadProgram::start(words);
    if (program_ != nullptr) {
      std::this_thread::sleep_for(kSettle);
      by_ = words.front();
      if (program_->running()) return;
      program_.reset();
    }
  }
  threads_ = std::make_unique<LoadThreads>(kind);
  by_ = fmt::format("{} thread{}", threads_->count(), threads_->count() == 1 ? "" : "s");
  std::this_thread::sleep_for(kSettle);
}

}  // namespace tutti::internal
