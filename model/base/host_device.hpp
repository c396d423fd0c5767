#pragma once

/// Marks what a host and the kernels of a GPU both execute.
#if defined(__CUDACC__)
#define TUTTI_HOST_DEVICE __host__ __device__
#else
#define TUTTI_HOST_DEVICE
#endif
