#pragma once
#include <span>
#include <string>
#include <string_view>

/// Fuzz targets: what the programs do with a file that a user gives, from its bytes on.
///
/// To add one: write a function like those below in a file `<name>_target.cpp`, declare it here, add a row to the table
/// of its program (`file_targets.cpp`, or `picture_targets.cpp` for what the inspection reads), its source in
/// `meson.build`, and a folder `corpus/<name>` where the table names no other seeds. The fuzzers, `tools/fuzz` and the
/// test of all corpora pick the row up.
namespace tutti::internal::fuzz {

struct Target {
  std::string_view name;  ///< of the folder in `corpus/` too
  /// Does what a program would do with a file of these bytes, within bounds that keep it fast. It ends whatever the
  /// bytes are; throws `Broken` where a promise does not hold.
  /// @return  whether the bytes are a file of this kind
  bool (*takes)(std::string_view bytes);
  /// Files that it takes, and folders of them, from the root of the repository; beside those of its corpus.
  std::span<const std::string_view> seeds;
};

/// The targets of this program.
[[nodiscard]] std::span<const Target> targets();

/// A promise of the code under test that does not hold; nothing catches it but a test.
struct Broken {
  std::string sentence;
};

/// @param promise  what should hold, and what was found instead; one sentence
void require(bool holds, const std::string& promise);

/// What files are called in errors.
inline constexpr std::string_view kFile = "f";

bool takes_machine(std::string_view bytes);
bool takes_batch(std::string_view bytes);
bool takes_tasks(std::string_view bytes);
bool takes_scenario(std::string_view bytes);
bool takes_changes(std::string_view bytes);
bool takes_exchange(std::string_view bytes);
bool takes_faults(std::string_view bytes);
bool takes_measurements(std::string_view bytes);
bool takes_calibration(std::string_view bytes);
bool takes_jobs(std::string_view bytes);
bool takes_journal(std::string_view bytes);
bool takes_recording(std::string_view bytes);
bool takes_copies(std::string_view bytes);
bool takes_import(std::string_view bytes);
bool takes_model(std::string_view bytes);
bool takes_shared_words(std::string_view bytes);
bool takes_nsys_trace(std::string_view bytes);
bool takes_chrome_trace(std::string_view bytes);
bool takes_png(std::string_view bytes);
bool takes_tiff(std::string_view bytes);
bool takes_truth(std::string_view bytes);

}  // namespace tutti::internal::fuzz
