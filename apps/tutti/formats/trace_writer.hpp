#pragma once
#include <cstdint>
#include <map>
#include <queue>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "apps/tutti/formats/recording.hpp"
#include "apps/tutti/formats/text_stream.hpp"

namespace tutti::internal {

/// Number of the trace's own keys; a reader refuses larger ones.
inline constexpr int kTraceVersion = 1;

/// Busy shares of the links of a machine over time, from copies in the order of their starts.
class LinkLoads {
 public:
  /// @param changed  (at, link, percent) is called where the share of a link changes, in the order of time
  template <class Changed>
  void advance(Duration at, const Changed& changed);
  template <class Changed>
  void add(const RecordingSlice& slice, const std::vector<std::uint32_t>& links, const Changed& changed);
  void begin(const std::vector<JournalLink>& links) { links_ = links, loads_.resize(links.size()); }

 private:
  struct Load {
    double rate = 0;  // byte/ns
    std::uint32_t active = 0;
    bool changed = false;
  };
  struct End {
    Duration at{};
    std::uint32_t link = 0;
    double rate = 0;
    bool operator>(const End& other) const { return at > other.at; }
  };
  void change(std::uint32_t link, double by);
  template <class Changed>
  void show(const Changed& changed);

  std::vector<JournalLink> links_;
  std::vector<Load> loads_;             // [links]
  std::vector<std::uint32_t> changed_;  // links, since `now_`
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  Duration now_{};
};

/// Writes a recording in the Trace Event Format that Perfetto's and Chrome's viewers read: a process for each device
/// and one for its predicted times, a thread for each engine, flows along the data of a job, counters for links,
/// instants for deadlines, misses and jobs over their bound. It keeps so many events alone as are needed to put them in
/// order.
class TraceWriter final : public RecordingSink {
 public:
  /// @param text  outlives the writer
  explicit TraceWriter(TextStream& text) : text_(&text) {}

  void begin(const RecordingHead& head) override;
  void add_task(const RecordingTask& task) override;
  void add_lane(const JournalLane& lane) override;
  void add_name(const std::string& name) override { names_.push_back(json_text(name)); }
  void add_route(const std::vector<std::uint32_t>& links) override;
  void job(const RecordingJob& job) override { put_off(job.start.value_or(job.arrival), job); }
  void slice(const RecordingSlice& slice) override { put_off(slice.start, slice); }
  void end(std::span<const std::string> notes) override;

  /// Events so far.
  [[nodiscard]] std::uint64_t events() const { return events_; }

 private:
  /// Threads for what cannot stand side by side in one: the jobs of a task, or what a lane did or is predicted to do.
  struct Track {
    std::uint32_t process = 0;
    std::string name;                      // as JSON, without its closing quotation mark
    std::string more;                      // further arguments of the names of its threads
    std::vector<std::uint32_t> threads{};  // rows
    std::vector<Duration> ends{};          // [threads] of the last slice
  };
  struct Place {
    std::uint32_t thread = 0;
    Duration start{};
  };
  using Event = std::variant<RecordingSlice, RecordingJob>;
  struct Pending {
    Duration at{};
    std::uint64_t number = 0;  // in order of coming
    std::size_t place = 0;     // in `events_waiting_`
    bool operator>(const Pending& other) const { return at != other.at ? at > other.at : number > other.number; }
  };

  void put_off(Duration at, const Event& event);
  void write_earliest();
  void write(const RecordingSlice& slice);
  void write(const RecordingJob& job);
  void write_flow(const RecordingSlice& slice, std::uint32_t process, const Place& place);
  void write_instant(const RecordingJob& job, const Place& place, Duration at, std::string_view what,
                     std::string_view category, char scope);
  void write_load(Duration at, std::uint32_t link, double percent);
  Place place(Track& track, Duration start, Duration end);
  std::uint32_t process_of(const std::string& device, bool measured);
  void name_process(std::uint32_t process, std::string_view name, std::string_view more);
  template <class... Arguments>
  void event(fmt::format_string<Arguments...> format, Arguments&&... arguments);

  TextStream* text_;
  RecordingHead head_;
  std::uint64_t events_ = 0;
  std::uint32_t threads_ = 0;
  std::map<std::string, std::uint32_t> devices_;      // that have processes
  std::vector<Track> tasks_, waits_;                  // [tasks]
  std::vector<std::string> task_names_;               // as JSON, without quotation marks
  std::vector<Track> lanes_[2];                       // predicted, measured
  std::vector<std::string> names_, routes_;           // as JSON
  std::vector<std::vector<std::uint32_t>> links_of_;  // [routes]
  std::vector<std::string> link_names_;
  LinkLoads loads_;
  std::priority_queue<Pending, std::vector<Pending>, std::greater<>> order_;
  std::vector<Event> waiting_;
  std::vector<std::size_t> free_;
  std::uint64_t number_ = 0;
};

}  // namespace tutti::internal
