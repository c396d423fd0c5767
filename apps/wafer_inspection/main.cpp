#include <charconv>
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <tutti/tutti.hpp>

#include "apps/backend_words.hpp"
#include "apps/completion.hpp"
#include "apps/configs_folder.hpp"
#include "apps/exit_code.hpp"
#include "apps/interrupt.hpp"
#include "apps/main_program.hpp"
#include "apps/manual.hpp"
#include "apps/output_file.hpp"
#include "apps/seed.hpp"
#include "apps/terminal.hpp"
#include "apps/wafer_inspection/camera.hpp"
#include "apps/wafer_inspection/errors.hpp"
#include "apps/wafer_inspection/inspection_program.hpp"
#include "apps/wafer_inspection/inspection_report.hpp"
#include "apps/wafer_inspection/marked_picture.hpp"
#include "apps/wafer_inspection/png_file.hpp"
#include "apps/wafer_inspection/run_remarks.hpp"
#include "apps/wafer_inspection/wafer_map.hpp"

namespace wafer {
namespace {

using tutti::Expected;
using tutti::programs::check_writable;
using tutti::programs::CommandLine;
using tutti::programs::fault_of_outputs;
using tutti::programs::file_of_name;
using tutti::programs::NamedFile;
using tutti::programs::write_file;
using enum tutti::programs::ExitCode;

constexpr std::int64_t usual_jobs = 200;
constexpr std::int64_t most_jobs = 10'000'000;  // of a run

constexpr auto usual_tasks = "configs/tasks/wafer-inspection.yaml";
constexpr auto camera_tasks = "configs/tasks/wafer-inspection-camera.yaml";

struct Options {
  std::optional<std::string> chosen_tasks;
  std::optional<std::string> camera;  // empty: the first one
  std::vector<std::string> images;
  std::string die;
  std::string origin;
  std::optional<int> threshold;
  // Of generated images.
  std::optional<int> size;
  std::optional<int> count;
  std::optional<int> defects;
  std::optional<int> shift;
  std::optional<std::uint64_t> seed;

  std::optional<std::int64_t> jobs;
  std::optional<std::string> machine;
  tutti::programs::BackendWords backend;
  std::string csv;
  std::string marked;
  std::string map;
  bool json = false;

  [[nodiscard]] std::string tasks() const {
    return file_of_name(chosen_tasks.value_or(camera ? camera_tasks : usual_tasks));
  }
};

/// @param shift  px, that dies are displaced
Expected<ImageSet> make_images(const Options& options, int shift) {
  const int side = options.size.value_or(2048);
  return generate_images({side, side, options.seed.value_or(1), 4, options.defects.value_or(12), shift},
                         options.count.value_or(8));
}

/// Two numbers from 0 with a sign between them, as in 64x48.
Expected<std::pair<int, int>> parse_two(const std::string& option, const std::string& text, char between) {
  std::pair<int, int> two;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, two.first);
  if (first.ec == std::errc{} && first.ptr != end && *first.ptr == between) {
    const auto second = std::from_chars(first.ptr + 1, end, two.second);
    if (second.ec == std::errc{} && second.ptr == end && two.first >= 0 && two.second >= 0) return two;
  }
  return invalid_input(
      fmt::format("{}: '{}' is not two numbers from 0, in pixels; write it like 64{}48", option, text, between));
}

/// What the command line says about the dies.
Expected<DieOptions> die_options(const Options& options) {
  DieOptions dies;
  if (options.threshold) dies.threshold = static_cast<std::uint16_t>(*options.threshold);
  if (options.die.empty() && !options.origin.empty())
    return invalid_input("--origin is the place of the first die; give its size with --die, too");
  if (options.die.empty()) return dies;
  const auto size = parse_two("--die", options.die, 'x');
  if (!size) return tl::unexpected(size.error());
  const auto place = parse_two("--origin", options.origin.empty() ? "0,0" : options.origin, ',');
  if (!place) return tl::unexpected(place.error());
  dies.first_die = Box{place->first, place->second, size->first, size->second};
  return dies;
}

/// The task set, which has one task, for images of this size.
Expected<tutti::TaskSet> load_inspection(const Options& options, tutti::Bytes image) {
  return tutti::TaskSet::load(
      options.tasks(),
      {.machine = options.machine, .parameters = {{"image", image}}, .no_peer = options.backend.no_peer});
}

/// Refuses what does not go with a camera; the clock is the real one there.
Expected<void> settle_camera(Options& options) {
  if (!options.camera) return {};
  if (!options.images.empty() || options.size || options.count || options.defects || options.seed || options.shift)
    return invalid_input("--camera gives the pictures; leave --images and the options of generated images out");
  if (!options.marked.empty())
    return invalid_input("--marked draws into pictures that are kept, and frames of a camera are not; leave it out");
  if (options.backend.clock.empty()) options.backend.clock = "real";
  if (options.backend.clock != "real") return invalid_input("--camera needs the real clock; leave --clock out");
  return {};
}

/// Generated images for the task set, whose dies are displaced where it aligns them.
Expected<ImageSet> make_images_for(const Options& options) {
  constexpr int kUsualShift = 2;
  if (options.shift) return make_images(options, *options.shift);
  const std::int64_t side = options.size.value_or(2048);
  const auto tasks = load_inspection(options, {side * side});
  if (!tasks) return tl::unexpected(tasks.error());
  if (const auto fine = declared_parts(*tasks); !fine) return tl::unexpected(fine.error());
  return make_images(options, aligns_dies(*tasks) ? kUsualShift : 0);
}

/// The first frame of the camera, in which the dies are found.
Expected<ImageSet> first_frame(const Options& options, Camera& camera) {
  const auto tasks = load_inspection(options, {std::int64_t{camera.width()} * camera.height()});
  if (!tasks) return tl::unexpected(tasks.error());
  if (const auto fine = declared_parts(*tasks); !fine) return tl::unexpected(fine.error());
  const tutti::TaskSpec task = tasks->spec().tasks.front();
  if (task.release != tutti::ReleaseSource::External || task.early_trigger == tutti::EarlyTriggers::Drop)
    return invalid_input(fmt::format("frames of a camera release the jobs: task '{}' needs 'release: external', and "
                                     "'early_trigger: defer', as in {}",
                                     task.name, camera_tasks),
                         task.place);
  const auto dies = die_options(options);
  if (!dies) return tl::unexpected(dies.error());
  return camera.first_frame(task.period).and_then([&](GrayImage&& image) {
    return set_of({"the first frame of " + camera.name(), std::move(image), {}}, *dies);
  });
}

Expected<ImageSet> load_images(const Options& options, Camera* camera) {
  if (camera != nullptr) return first_frame(options, *camera);
  const auto dies = die_options(options);
  if (!dies) return tl::unexpected(dies.error());
  if (options.images.empty()) {
    if (dies->first_die) return invalid_input("--die is about pictures of yours; name them with --images");
    return make_images_for(options);
  }
  if (options.size || options.count || options.defects || options.seed || options.shift)
    return invalid_input(
        "--size, --count, --defects, --seed and --shift are for generated images; leave them out here");
  return read_images(options.images, *dies);
}

int generate(const Options& options) {
  if (options.images.size() != 1)
    return report_error(invalid_input("--images is required: the folder to write to").value());
  const auto images = make_images(options, options.shift.value_or(0));
  if (!images) return report_error(images.error());
  if (const auto written = write_images(options.images.front(), *images); !written)
    return report_error(written.error());
  tutti::programs::print("{} wafers of {} x {} in {}, what is true about each beside it\n", images->pictures.size(),
                         images->grid.width, images->grid.height, options.images.front());
  return kOk;
}

/// Where the marked form of a picture belongs.
std::string marked_file(const Options& options, const Picture& picture) {
  return (std::filesystem::path(options.marked) / name_of(picture)).replace_extension(".png").string();
}

/// The files that the run reads: pictures with what is true about them, the task set, and the machine that it names.
std::vector<std::string> inputs_of(const Options& options, const ImageSet& images, const tutti::TaskSet& tasks) {
  namespace fs = std::filesystem;
  std::vector<std::string> files{options.tasks(),
                                 (fs::path(options.tasks()).parent_path() / tasks.spec().machine).string(),
                                 options.machine.value_or("")};
  for (const Picture& picture : images.pictures) {
    if (options.images.empty()) break;  // they were generated
    files.push_back(picture.file);
    if (picture.truth) files.push_back(fs::path(picture.file).replace_extension(".json").string());
  }
  std::erase(files, "");
  return files;
}

/// Checks that every output can be written and replaces nothing else, before a run whose results belong there.
Expected<void> check_outputs(const Options& options, const ImageSet& images, const tutti::TaskSet& tasks) {
  std::vector<NamedFile> outputs;
  if (!options.csv.empty()) outputs.push_back({"--csv", options.csv});
  if (!options.map.empty()) outputs.push_back({"--map", options.map});
  std::error_code status;
  for (const Picture& picture : images.pictures) {
    if (options.marked.empty()) break;
    if (std::filesystem::equivalent(std::filesystem::absolute(picture.file).parent_path(), options.marked, status))
      return invalid_input("--marked: marked pictures would replace the pictures in this folder; name another one",
                           {options.marked, 0, 0});
    outputs.push_back({"--marked", marked_file(options, picture)});
  }
  if (auto fault = fault_of_outputs(outputs, inputs_of(options, images, tasks)); !fault.empty())
    return invalid_input(std::move(fault));
  if (!options.marked.empty())
    if (auto made = tutti::programs::make_folder(options.marked); !made) return made;
  for (const NamedFile& output : outputs)
    if (auto fine = check_writable(output.path); !fine) return fine;
  return {};
}

Expected<void> write_marked(const Options& options, const ImageSet& images, const InspectionProgram& program) {
  const int bits = used_bits(images);
  for (std::size_t i = 0; i < images.pictures.size(); ++i) {
    const Picture& picture = images.pictures[i];
    const InspectedPicture& result = program.results()[i];
    if (!result.inspected) continue;
    const auto rgb = marked_picture(picture.image, bits, result.defects);
    if (auto ok = write_rgb_png(marked_file(options, picture), rgb, images.grid.width); !ok) return ok;
  }
  return {};
}

Expected<void> write_outputs(const Options& options, const ImageSet& images, const InspectionProgram& program) {
  if (!options.csv.empty())
    if (auto written = write_file(options.csv, to_csv(images.grid, program.results())); !written) return written;
  if (!options.map.empty())
    if (auto written = write_file(options.map, wafer_map_svg(images.grid, program.results())); !written) return written;
  return options.marked.empty() ? Expected<void>{} : write_marked(options, images, program);
}

/// The run, whose jobs a camera releases where there is one.
Expected<tutti::RunRecord> run_tasks(const tutti::TaskSet& tasks, const tutti::Verdict& verdict,
                                     const tutti::Kernels& kernels, InspectionProgram& program,
                                     tutti::RunOptions& options, Camera* camera) {
  const tutti::TaskSpec task = tasks.spec().tasks.front();
  if (camera == nullptr) return tutti::run(*verdict.admitted, kernels, {{task.name, program.callbacks()}}, options);
  FrameQueue frames(options.triggers[task.name], task.period, task.jitter);
  program.take_frames_from(frames);
  if (auto fine = camera->deliver(frames, *options.stop); !fine) return tl::unexpected(std::move(fine.error()));
  auto record = tutti::run(*verdict.admitted, kernels, {{task.name, program.callbacks()}}, options);
  camera->stop();
  return record;
}

/// The exit code of a run with a camera: frames that nothing inspected in time are trouble of the host.
int camera_exit_code(const Camera& camera, const tutti::TriggerCounts& triggers, int exit_code) {
  if (camera.is_lost()) {
    tutti::programs::print_error(
        fmt::format("camera {}: the connection is lost; look at its power, its cable and the network", camera.name()));
    return kMachineError;
  }
  if (const FrameCounts frames = camera.counts(); frames.lost() > 0) {
    tutti::programs::print_error(
        fmt::format("camera {}: {} frames were lost, and are not inspected", camera.name(), frames.lost()));
    if (exit_code == kOk) exit_code = kMachineError;
  }
  if (triggers.dropped > 0) {  // by the run, though the queue let them pass: the host stood for half a period
    tutti::programs::print_error(
        fmt::format("camera {}: {} frames released no job, and later jobs inspected the frame before theirs",
                    camera.name(), triggers.dropped));
    if (exit_code == kOk) exit_code = kMachineError;
  }
  return exit_code;
}

/// Runs the inspection on an admitted set, and reports.
int run_station(const Options& options, const tutti::BackendOptions& backend, const ImageSet& images, Camera* camera,
                const tutti::TaskSet& tasks, const tutti::Verdict& verdict, InspectionProgram& program,
                tutti::Bytes declared) {
  tutti::Kernels kernels;
  if (auto added = add_inspection(kernels); !added) return report_error(added.error());
  const auto pictures = static_cast<std::int64_t>(images.pictures.size());
  tutti::RunOptions run{.backend = backend};
  run.jobs = static_cast<std::uint64_t>(options.jobs.value_or(std::max(usual_jobs, pictures)));
  run.stop = &tutti::programs::watch_for_interrupt();
  const auto record = run_tasks(tasks, verdict, kernels, program, run, camera);
  if (!record) return report_error(record.error());

  const auto written = write_outputs(options, images, program);  // first: nobody may read the report
  InspectionReport report{&images, &program, declared,
                          times_of(tasks, verdict, *record, options.backend.backend, options.backend.clock_name())};
  if (camera != nullptr) report.camera = {camera->name(), camera->counts(), record->summaries.front().triggers};
  tutti::programs::print("{}", options.json ? report_json(report) : report_text(report));
  int exit_code = exit_code_of(*record, options.backend.simulated());
  print_remarks(*record, exit_code);
  if (camera != nullptr) exit_code = camera_exit_code(*camera, report.camera->triggers, exit_code);
  if (const auto left = std::ranges::count(program.results(), false, &InspectedPicture::inspected); left > 0)
    tutti::programs::print_error(
        fmt::format("{} of {} pictures were not inspected; --jobs {} takes each once", left, pictures, pictures));
  if (!written) return report_error(written.error());
  const InspectionTally& tally = program.tally();
  const bool all_found = tally.found == tally.planted && tally.false_alarms == 0;
  return exit_code == kOk && !all_found ? kRefused : exit_code;
}

/// The size of an image for the task set: its own, or more where the shares of the task set need that.
Expected<tutti::Bytes> size_for_tasks(const Options& options, const ImageSet& images) {
  return load_inspection(options, {images.image_bytes()})
      .and_then(declared_parts)
      .map([&](const std::vector<tutti::Bytes>& parts) {
        return size_to_declare(images.grid, parts, images.first().bytes_per_pixel());
      });
}

void print_refusal(const Options& options, tutti::Bytes image, const tutti::Verdict& verdict) {
  tutti::programs::print_error(
      fmt::format("the deadlines cannot be guaranteed; 'tutti check {} --set image={}B{}' tells more", options.tasks(),
                  image.count, options.machine ? " --machine " + *options.machine : ""));
  for (const std::string& reason : verdict.reasons) tutti::programs::print_error(fmt::format("  {}", reason));
}

/// The threshold that was asked for, or that of these pictures.
Expected<std::uint16_t> threshold_of(const Options& options, const ImageSet& images) {
  const int most = (1 << images.first().bits()) - 1;
  const int threshold = options.threshold.value_or(threshold_for(images));
  if (threshold <= most) return static_cast<std::uint16_t>(threshold);
  return invalid_input(
      fmt::format("--threshold: {} is above the levels of these pictures; give 0 to {}", threshold, most));
}

int inspect(Options options) {
  if (const auto fine = settle_camera(options); !fine) return report_error(fine.error());
  tutti::BackendOptions backend;
  if (std::string fault = read_backend_words(options.backend, backend); !fault.empty())
    return report_error(invalid_input(std::move(fault)).value());
  std::unique_ptr<Camera> camera;
  if (options.camera) {
    auto opened = open_camera(*options.camera);
    if (!opened) return report_error(opened.error());
    camera = *std::move(opened);
  }
  const auto images = load_images(options, camera.get());
  if (!images) return report_error(images.error());
  const auto threshold = threshold_of(options, *images);
  if (!threshold) return report_error(threshold.error());
  const auto declared = size_for_tasks(options, *images);
  if (!declared) return report_error(declared.error());
  const auto tasks = load_inspection(options, *declared);
  if (!tasks) return report_error(tasks.error());
  if (const auto fine = check_outputs(options, *images, *tasks); !fine) return report_error(fine.error());
  const auto verdict = tutti::check(*tasks);
  if (!verdict) return report_error(verdict.error());
  if (!verdict->admitted) return print_refusal(options, *declared, *verdict), kRefused;
  auto program = InspectionProgram::make(*tasks, *images, *threshold);
  if (!program) return report_error(program.error());
  return run_station(options, backend, *images, camera.get(), *tasks, *verdict, *program, *declared);
}

void add_generating_options(CommandLine& program, Options& options) {
  program.group("Generated images");
  program.add("--size", &options.size, "side of an image in pixels").shows_default("2048");
  program.add("--count", &options.count, "how many images to generate").between(1, 10000).shows_default("8");
  program.add("--defects", &options.defects, "planted in each generated image").shows_default("12");
  program
      .add("--shift", &options.shift,
           "pixels, at most, that each die of a generated image is displaced; 1 where dies have less than 64 pixels a "
           "side, "
           "0 below 32")
      .between(0, 2)
      .shows_default("2 where the task set aligns dies, else 0");
  program.add("--seed", &options.seed, "of the generated images").check(tutti::programs::check_seed).shows_default("1");
}

void add_picture_options(CommandLine& program, Options& options) {
  program.group("Images of yours");
  program.add(
      "--images", &options.images,
      "pictures, or folders of them: grayscale PNG or TIFF of 8 or 16 bits, all of one size; where the truth is "
      "known, it is X.json beside X.png. Without this option some are generated");
  program
      .add("--camera", &options.camera,
           "inspect the frames of a camera, NAME as Aravis names it, the first one where that is left out; frames "
           "release the jobs, on the real clock")
      .value_may_be_left_out();
  program.add(
      "--die", &options.die,
      "WIDTHxHEIGHT of a die in pixels, its street included; without it the dies are found by their repetition");
  program.add("--origin", &options.origin, "X,Y of the first whole die in pixels").shows_default("0,0");
  program.add("--threshold", &options.threshold, "gray levels; a difference up to this is noise")
      .between(0, 65'535)
      .shows_default("24 of 256, of the range that the pictures use");
}

void add_output_options(CommandLine& program, Options& options) {
  program.group("Results");
  program.add("--csv", &options.csv, "file for the list of defects, a line each; the README says what its columns are")
      .output();
  program.add("--marked", &options.marked, "FOLDER for the pictures with their defects framed, as PNG");
  program.add("--map", &options.map, "file for the wafer map: defects of each die over all pictures, as SVG").output();
  program.add("--json", &options.json, "print the report as one JSON object, with the defects of each picture");
}

int run_program(int argc, char** argv) {
  Options options;
  CommandLine program("wafer_inspection", "inspects wafers on several GPUs, each image within its deadline");
  program.footer(
      "Without a command it inspects, on the machine that the task set names.\n"
      "Examples:\n  wafer_inspection generate --images wafers --size 1024 --count 4\n  wafer_inspection --images "
      "wafers --csv defects.csv --map map.svg --marked marked\n  wafer_inspection --images scan.tif --die 640x480 "
      "--origin 12,30\n  wafer_inspection --camera --jobs 1000\n  wafer_inspection --machine this-host.yaml --backend "
      "cuda\n"
      "The response is what the bound is about. End to end adds what the host does in place of a camera, and to find\n"
      "defects in the reports; a host step before the first batch, and one behind the last, make that part of the "
      "job.\n"
      "Exit code: 0 fine, 1 a deadline missed, or known defects missed; 2 usage or a picture that cannot be "
      "inspected,\n"
      "3 machine or host trouble or a job over its bound, 130 interrupted, 141 nobody reads the output.");
  program.add("--tasks", &options.chosen_tasks, "task set with the inspection as its one task")
      .shows_default(fmt::format("{}; {} with --camera", usual_tasks, camera_tasks));
  program.add("--jobs", &options.jobs, "images to inspect; the pictures are taken in turn")
      .between(1, most_jobs)
      .shows_default("200, or each picture once");
  program.add("--machine", &options.machine, "machine file to use in place of the one that the task set names")
      .replaced_by(file_of_name);
  add_picture_options(program, options);
  add_generating_options(program, options);
  add_output_options(program, options);
  add_backend_options(program, options.backend);
  CommandLine generating = program.command("generate", "write wafers with planted defects into the folder --images");
  generating.takes_options_of_program();
  generating.runs([&] { return generate(options); });
  tutti::programs::add_completion(program);
  tutti::programs::add_manual(program);
  program.runs([&] { return inspect(options); });
  return program.run(argc, argv);
}

}  // namespace
}  // namespace wafer

int main(int argc, char** argv) {
  return tutti::programs::main_program([&] { return wafer::run_program(argc, argv); });
}
