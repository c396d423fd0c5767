#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tutti/run.hpp>

#include "apps/wafer_inspection/defect_list.hpp"
#include "apps/wafer_inspection/frame_queue.hpp"
#include "apps/wafer_inspection/frame_ring.hpp"
#include "apps/wafer_inspection/image_set.hpp"
#include "apps/wafer_inspection/inspection_kernel.hpp"

namespace wafer {

/// Counts of found and planted defects over all inspections of a run whose pictures have a truth.
struct InspectionTally {
  std::uint64_t images = 0;
  std::uint64_t planted = 0;
  std::uint64_t found = 0;
  std::uint64_t false_alarms = 0;
  std::uint64_t full_lists = 0;  ///< inspections in which more pixels differed than a list holds
};

/// The sizes that the one task of a set declares for the parts of an image.
/// @errors InvalidInput: there are more tasks, or its job is no inspection, as `InspectionProgram` describes it.
[[nodiscard]] tutti::Expected<std::vector<tutti::Bytes>> declared_parts(const tutti::TaskSet& tasks);

/// Whether the kernels of that task find out how far dies are displaced.
/// @pre `declared_parts(tasks)`
[[nodiscard]] bool aligns_dies(const tutti::TaskSet& tasks);

/// The inspection as a task: each job takes the next image, sends its parts to the GPUs, compares the dies there,
/// copies the reports back and searches them for defects.
///
/// The task's job has two batches: the parts, one stream a GPU out of one memory with the kernel behind it; then the
/// reports, one stream for each part, in the same order, back into that memory. The declared sizes are upper bounds;
/// the image is split at its die rows within them. In a task with buffers three kernels work on a part: the first finds
/// how far each die is displaced, the second compares, the third lists what differs with its class, and the lists come
/// back in place of the reports. The first may be left out where no die is displaced. Where the buffer that the parts
/// are copied from has `slots` for all pictures, they lie there from the start, as a camera leaves its frames.
///
/// The host's work at both ends belongs to no batch: it copies the image into its buffers in place of a camera, and
/// searches the reports for defects. A `host:` step before the first batch and one behind the last declare this work;
/// the steps then do it, and the bound covers it. Without them a run measures it beside the job.
class InspectionProgram {
 public:
  /// @param images     that outlive the program
  /// @param threshold  of the comparison, gray levels.
  /// @errors InvalidInput: the task's job is not as above, or the image cannot be split within its sizes; and as
  ///         `FrameRing`.
  [[nodiscard]] static tutti::Expected<InspectionProgram> make(const tutti::TaskSet& tasks, const ImageSet& images,
                                                               std::uint16_t threshold);

  /// Jobs take the frames of a camera in place of the pictures of the set, which say how frames are inspected.
  /// @param frames  outlives the run
  void take_frames_from(FrameQueue& frames);

  /// What a run calls; the program outlives the run.
  [[nodiscard]] tutti::TaskProgram callbacks();

  [[nodiscard]] const InspectionTally& tally() const { return tally_; }
  [[nodiscard]] const DieComparison& comparison() const { return comparison_; }
  /// The result of each picture's first inspection; of each frame, in the order in which their jobs ended.
  [[nodiscard]] const std::vector<InspectedPicture>& results() const { return results_; }
  [[nodiscard]] const std::vector<Part>& parts() const { return parts_; }

 private:
  InspectionProgram(const ImageSet& images, std::vector<Part> parts, FrameRing ring, std::uint16_t threshold);
  /// Puts the job's image into its buffers.
  void take_picture(const tutti::Job& job);
  void send(std::span<const std::byte> image, const tutti::Job& job);
  /// The job's image, as far as it was sent; black elsewhere.
  [[nodiscard]] GrayImage sent(const tutti::Job& job) const;
  /// Searches what came back for defects, and compares them with the truth where it is known.
  void find_in_reports(const tutti::Job& job);
  [[nodiscard]] std::vector<FoundDefect> find_in_images(const tutti::Job& job);
  [[nodiscard]] std::vector<FoundDefect> find_in_lists(const tutti::Job& job);
  /// @param image  that was compared
  [[nodiscard]] std::vector<Defect> described(std::vector<FoundDefect> found, const GrayImage& image) const;

  /// Where a part lies in a buffer of the task, or its list.
  struct Place {
    std::string buffer;
    std::size_t at = 0, size = 0;

    [[nodiscard]] std::span<std::byte> of(const tutti::Job& job) const { return job.buffer(buffer).subspan(at, size); }
  };
  [[nodiscard]] tutti::Expected<void> find_places(const tutti::TaskSet& tasks);
  [[nodiscard]] bool has_lists() const { return !lists_.empty(); }
  [[nodiscard]] std::span<std::byte> source_of(const tutti::Job& job, std::size_t part) const;

  [[nodiscard]] std::size_t picture_of(const tutti::Job& job) const {
    return (ring_.empty() ? job.index : job.index % ring_.slots().size()) % images_->pictures.size();
  }

  const ImageSet* images_;
  FrameQueue* frames_ = nullptr;
  std::vector<Part> parts_;
  FrameRing ring_;
  DieComparison comparison_;
  GrayImage report_;                                       // of the whole image
  std::vector<Place> sources_, lists_;                     // [parts] where lists come back in place of reports
  std::optional<std::size_t> camera_step_, defects_step_;  // of the task, where declared
  InspectionTally tally_;
  std::vector<InspectedPicture> results_;  // [pictures], or of the frames
};

}  // namespace wafer
