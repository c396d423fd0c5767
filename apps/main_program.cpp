#include "apps/main_program.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "apps/exit_code.hpp"

namespace tutti::programs {
namespace {

/// Opens what is closed of standard input, output and error: the first file that is opened would stand in its place.
/// What is written there goes nowhere, as who closed it asked.
void open_standard_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(descriptor, F_GETFD) == -1 && open("/dev/null", O_RDWR) == -1) return;
}

/// Whether standard output is a pipe whose reader has enough, like `head`.
bool reader_is_gone() {
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  return poll(&output, 1, 0) == 1 && (output.revents & (POLLERR | POLLHUP)) != 0;
}

// The sentences go out without fmt, which throws where standard error takes nothing.

int report_is_lost(const char* reason) {
  if (reader_is_gone()) return kReaderGone;
  std::fprintf(stderr, "standard output: the report cannot be written to its end (%s); make room for it\n", reason);
  return kMachineError;
}

int run(const std::function<int()>& program) {
  try {
    const int exit_code = program();
    if (std::fflush(stdout) != 0) return report_is_lost(std::strerror(errno));
    return std::ferror(stdout) != 0 ? report_is_lost("write error") : exit_code;
  } catch (const std::bad_alloc&) {
    std::fputs("out of memory; give this program more, or less to do at a time\n", stderr);
  } catch (const std::system_error& error) {  // fmt reports with it what it cannot print
    if (std::ferror(stdout) != 0) return report_is_lost(error.code().message().c_str());
    std::fprintf(stderr, "the host refuses what this program needs (%s); see its limits\n", error.what());
  }
  return kMachineError;
}

}  // namespace

int main_program(const std::function<int()>& program) {
  open_standard_streams();
  for (const int number : {SIGPIPE, SIGXFSZ}) std::signal(number, SIG_IGN);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // keeps reports and remarks in order when both go to one file
  return run(program);
}

}  // namespace tutti::programs
