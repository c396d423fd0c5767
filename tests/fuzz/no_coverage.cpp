// GCC calls this function in each block of what is compiled with -fsanitize-coverage=trace-pc. A program that is no
// fuzzer calls it for nothing; the calls of a fuzzer go to coverage.cpp.
extern "C" void __sanitizer_cov_trace_pc();

void __sanitizer_cov_trace_pc() {}
