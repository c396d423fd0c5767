#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <thread>
#include <vector>

#include <mpi.h>

#include "runtime/comm/fabric.hpp"
#include "runtime/comm/transports.hpp"

namespace tutti::internal::comm {

/// A thread of the host that stands for the NIC of one rank: it takes what the rings hold, and sends and receives by
/// MPI. Bytes of a GPU go through memory of the host. It is the baseline that on-stream transports are compared with.
///
/// Rings, words and outcomes are those of the soft NIC, of which this rank's side alone is used. Messages keep their
/// order among messages, and puts among puts.
class MpiProxy {
 public:
  /// @param ranks   of the job; the proxy frees it
  /// @param fabric  of this process, with the lanes of the soft transport; outlives the proxy, as does `memory`
  MpiProxy(MPI_Comm ranks, Fabric fabric, ProxyMemory& memory);
  MpiProxy(const MpiProxy&) = delete;  // its thread holds a reference to it
  MpiProxy& operator=(const MpiProxy&) = delete;
  ~MpiProxy();
  /// Waits until all ranks have come here; where one gave up, for a while only. Called once.
  /// @return whether all came, so that nothing of this job is under way in MPI
  [[nodiscard]] bool end();

 private:
  /// A put, in front of its bytes.
  struct Header {
    std::uint64_t bytes = 0;
    std::uint64_t offset = 0;
    Word region = 0;
    Word word = kNoWord;
    Word value = 0;
    Word unused = 0;
  };
  /// Bytes under way between the memory of a buffer and MPI.
  struct Flight {
    std::byte* memory = nullptr;     ///< of the buffer; null: of none
    std::span<std::byte> staging{};  ///< empty: MPI takes the memory itself
    std::uint64_t bytes = 0;
    Outcome outcome = Outcome::Ok;
    Header header{};
    MPI_Request header_request = MPI_REQUEST_NULL;
    MPI_Request bytes_request = MPI_REQUEST_NULL;
  };
  /// What is under way in one lane between this rank and a peer.
  struct Lane {
    int peer = 0, lane = 0;
    std::uint64_t sends_taken = 0, sends_ended = 0, receives_taken = 0, receives_ended = 0;
    std::deque<Flight> sends, receives, puts;  // in order; puts are the peer's
    Header header{};                           // of the peer's next put
    MPI_Request header_request = MPI_REQUEST_NULL;
    bool has_header = false;  // that has come and was not taken
  };

  void run();
  [[nodiscard]] bool serve(Lane& lane);
  [[nodiscard]] bool take_sends(Lane& lane);
  [[nodiscard]] bool take_receives(Lane& lane);
  [[nodiscard]] bool take_puts(Lane& lane);
  [[nodiscard]] bool end_sends(Lane& lane);
  [[nodiscard]] bool end_receives(Lane& lane);
  [[nodiscard]] bool end_puts(Lane& lane);
  void expect_header(Lane& lane);
  /// Finds the memory of a piece of this rank, and staging for it where MPI cannot take it.
  [[nodiscard]] Flight flight_of(Word region, std::uint64_t offset, std::uint64_t bytes);
  void receive_bytes(Flight& flight, int peer, int tag);
  /// Whether a flight that was received is over; its bytes are in the buffer then.
  [[nodiscard]] bool has_arrived(Flight& flight);
  [[nodiscard]] bool is_over(MPI_Request& request, Flight& flight);
  void give_back(std::span<std::byte> staging);
  [[nodiscard]] bool has_given_up() const;
  [[nodiscard]] bool pass_on_aborts();
  [[nodiscard]] bool wait_for_all();
  void leave();

  MPI_Comm ranks_;
  Fabric fabric_;
  ProxyMemory& memory_;
  int rank_ = 0;
  std::deque<Lane> lanes_;
  std::vector<std::span<std::byte>> free_staging_;
  std::array<char, 256> reason_ = {}, own_reason_ = {};  // of another rank that gives up; of this one
  MPI_Request reason_request_ = MPI_REQUEST_NULL;
  std::vector<MPI_Request> told_;  // the others, that this rank gave up
  bool has_left_in_order_ = false;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace tutti::internal::comm
