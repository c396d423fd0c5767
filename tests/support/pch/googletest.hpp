// Precompiled once for each test program.
#include <gtest/gtest.h>

#include "model/pch/standard.hpp"
