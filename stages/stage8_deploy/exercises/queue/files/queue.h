// Requests that wait for the model. The time is an argument, in milliseconds; it never decreases.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

class Queue {
 public:
  struct Limits {
    size_t waiting;  // requests that wait
    size_t batch;    // requests in a batch
    int64_t delay;   // ms that a request waits for others
  };

  explicit Queue(Limits limits) : limits_(limits) {}

  // Whether the request is accepted.
  bool push(int request, int64_t now) {
    // BEGIN SOLUTION push: this accepts every request.
    if (is_closed_ || waiting_.size() >= limits_.waiting) return false;
    waiting_.push_back({request, now});
    return true;
    // BEGIN STARTER
    // waiting_.push_back({request, now});
    // return true;
    // END STARTER
    // END SOLUTION
  }

  // The requests of the next batch; empty if none is due.
  std::vector<int> pop(int64_t now) {
    std::vector<int> batch;
    // BEGIN SOLUTION pop: this returns one request, without waiting for others.
    if (waiting_.empty()) return batch;
    const bool has_waited = now - waiting_.front().arrival >= limits_.delay;
    if (!is_closed_ && !has_waited && waiting_.size() < limits_.batch) return batch;
    while (!waiting_.empty() && batch.size() < limits_.batch) {
      batch.push_back(waiting_.front().request);
      waiting_.pop_front();
    }
    // BEGIN STARTER
    // if (waiting_.empty()) return batch;
    // batch.push_back(waiting_.front().request);
    // waiting_.pop_front();
    // END STARTER
    // END SOLUTION
    return batch;
  }

  // No more requests are accepted.
  void close() { is_closed_ = true; }

 private:
  struct Waiting {
    int request;
    int64_t arrival;
  };

  const Limits limits_;
  std::deque<Waiting> waiting_;
  bool is_closed_ = false;
};
