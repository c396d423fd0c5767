// Precompiled once for each test program.
#include <gtest/gtest.h>

#include "model/pch/standard.hpp"

// Without optimisation GCC 12 does not compile this header, which Eigen includes, behind a precompiled one.
#if __has_include(<xmmintrin.h>)
#include <xmmintrin.h>
#endif
