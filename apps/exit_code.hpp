#pragma once

namespace tutti::programs {

/// The exit codes that scripts rely on.
enum ExitCode : int {
  kOk = 0,
  kRefused = 1,       ///< not schedulable, a deadline missed
  kUsage = 2,         ///< usage or invalid input
  kMachineError = 3,  ///< machine, driver, host or a user's kernel; a job or a chain over its bound
  kDrifted = 4,       ///< the calibration does not hold any more
  kInterrupted = 130,
  kReaderGone = 141,  ///< the reader of standard output went away; 128 + SIGPIPE
};

}  // namespace tutti::programs
