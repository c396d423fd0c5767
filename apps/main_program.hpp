#pragma once
#include <functional>

namespace tutti::programs {

/// Runs all of a program's `main`, so that it ends with a sentence on standard error and `kMachineError` where memory
/// runs out or its report cannot be written, as on a full disk. Where the reader of a pipe has gone, it ends without a
/// word and with `kReaderGone`, as SIGPIPE would end it.
///
/// Writing to a pipe that nobody reads and above the limit of a file's size are errors from here on, no signals. A
/// closed standard output is /dev/null; no file that is opened takes its number.
/// @return  the exit code of the program
[[nodiscard]] int main_program(const std::function<int()>& program);

}  // namespace tutti::programs
