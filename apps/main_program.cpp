#include "apps/main_program.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include "apps/exit_code.hpp"

namespace tutti::programs {
namespace {

/// Opens what is closed of standard input, output and error: the first file that is opened would stand in its place.
/// Writing to standard output still fails, since that is opened for reading.
void open_standard_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(descriptor, F_GETFD) == -1 && open("/dev/null", descriptor == STDOUT_FILENO ? O_RDONLY : O_RDWR) == -1)
      return;
}

// The sentences go out without fmt, which throws where standard error takes nothing.

int report_is_lost(const char* reason) {
  std::fprintf(stderr, "standard output: the report cannot be written to its end (%s); make room, or read all of it\n",
               reason);
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
