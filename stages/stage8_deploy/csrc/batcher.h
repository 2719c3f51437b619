// Joins concurrent requests into batches: one thread calls the model for all sequences that wait.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "metrics.h"
#include "sequence.h"

class Batcher {
 public:
  using Predict = std::function<std::vector<Prediction>(const std::vector<Sequence>&)>;
  struct Limits {
    size_t batch;                       // sequences in a call of the model
    size_t queue;                       // sequences that wait
    std::chrono::milliseconds delay;    // how long the first sequence of a batch waits for others
    std::chrono::milliseconds timeout;  // from the arrival of a sequence to its answer
  };

  Batcher(Predict predict, Limits limits);
  ~Batcher();  // finishes the sequences that wait

  // Waits for the prediction. Throws Failure if the queue is full, if time is up, or if the model fails.
  Prediction run(Sequence sequence);

  size_t waiting() const;
  const Histogram& batch_sizes() const { return batch_sizes_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Job {
    Sequence sequence;
    Clock::time_point arrival;
    std::promise<Prediction> answer;
  };

  const Predict predict_;
  const Limits limits_;
  Histogram batch_sizes_;
  mutable std::mutex mutex_;  // of the two members below
  std::deque<Job> jobs_;
  bool is_stopping_ = false;
  std::condition_variable changed_;
  std::thread thread_;  // the last member: it starts when all others exist

  void work();
  std::vector<Job> next_batch();
  void answer(std::vector<Job> batch);
  void answer_one(Job& job);
  void drop_expired(std::vector<Job>& batch) const;
};
