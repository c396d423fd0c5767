// Precompiled once for the commands.
#include <nlohmann/json.hpp>

#include "model/pch/standard.hpp"
