#pragma once
#include <filesystem>
#include <string>

namespace tutti::programs {

/// The folder `configs`, with machines, batches and task sets to start from: of the installed program, wherever its
/// prefix was moved to, or of the tree that the program was built in. Empty where there is none.
[[nodiscard]] std::filesystem::path configs_folder();

/// What a name on a command line stands for: the file from the current folder on. Where that is missing and the name
/// begins with `configs/`, it stands for the file of `configs_folder`, so that examples hold in every folder.
/// @return  the name as it is where neither is there, so that whoever opens it says so
[[nodiscard]] std::string file_of_name(const std::string& name);

}  // namespace tutti::programs
