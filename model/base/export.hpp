#pragma once

/// Marks what the shared library shows to programs; everything else is hidden.
#define TUTTI_API __attribute__((visibility("default")))
