// The states of streams: sequences whose steps arrive in several requests.
#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <unordered_map>

#include "sequence.h"

class Streams {
 public:
  struct Limits {
    size_t count;                 // streams at a time
    std::chrono::seconds expiry;  // how long a stream is kept after its last request
  };

  // A stream during one request; no other request can use it meanwhile. Without a call of `keep` or `end`,
  // the stream is as before, so the client may repeat a request that failed.
  class Turn {
   public:
    Turn(const Turn&) = delete;
    ~Turn();
    const State& state() const { return state_; }  // before this request, as is the number of steps
    int64_t steps() const { return steps_; }
    void keep(const State& state, int64_t steps);
    void end();

   private:
    friend class Streams;
    Turn(Streams& streams, const std::string& id, const State& state, int64_t steps)
        : streams_(streams), id_(id), state_(state), steps_(steps) {}
    Streams& streams_;
    const std::string id_;
    const State state_;
    const int64_t steps_;
  };

  Streams(State first, Limits limits) : first_(std::move(first)), limits_(limits) {}

  // Begins a stream, or continues one. Throws Failure if it is in use, unknown, or one too many.
  Turn begin(const std::string& id);
  Turn resume(const std::string& id);
  size_t count() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    State state;
    int64_t steps = 0;  // 0: its first request has not been answered yet
    bool is_in_use = false;
    Clock::time_point last_use;
  };

  const State first_;
  const Limits limits_;
  mutable std::mutex mutex_;  // of `entries_`
  std::unordered_map<std::string, Entry> entries_;

  void remove_expired();
};
