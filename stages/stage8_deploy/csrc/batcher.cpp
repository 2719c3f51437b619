#include "batcher.h"

#include <algorithm>

Batcher::Batcher(Predict predict, Limits limits)
    : predict_(std::move(predict)),
      limits_(limits),
      batch_sizes_("lltm_batch_size", "Sequences in each call of the model.", {1, 2, 4, 8, 16, 32, 64}),
      thread_([this] { work(); }) {}

Batcher::~Batcher() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Prediction Batcher::run(Sequence sequence) {
  const auto arrival = Clock::now();
  std::future<Prediction> answer;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (jobs_.size() >= limits_.queue)
      throw Failure(kUnavailable, "the queue is full: ", jobs_.size(), " sequences wait; try again later");
    jobs_.push_back({std::move(sequence), arrival, {}});
    answer = jobs_.back().answer.get_future();
  }
  changed_.notify_all();
  if (answer.wait_until(arrival + limits_.timeout) == std::future_status::timeout)
    throw Failure(kTimeout, "no prediction within ", limits_.timeout.count(), " ms; try again later");
  return answer.get();
}

size_t Batcher::waiting() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return jobs_.size();
}

void Batcher::work() {
  for (auto batch = next_batch(); !batch.empty(); batch = next_batch()) answer(std::move(batch));
}

// Waits for a batch that is full or whose first sequence has waited long enough. Empty: the end.
std::vector<Batcher::Job> Batcher::next_batch() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return is_stopping_ || !jobs_.empty(); });
  if (jobs_.empty()) return {};
  changed_.wait_until(lock, jobs_.front().arrival + limits_.delay,
                      [&] { return is_stopping_ || jobs_.size() >= limits_.batch; });
  const auto end = jobs_.begin() + std::min(jobs_.size(), limits_.batch);
  std::vector<Job> batch(std::make_move_iterator(jobs_.begin()), std::make_move_iterator(end));
  jobs_.erase(jobs_.begin(), end);
  return batch;
}

void Batcher::answer(std::vector<Job> batch) {
  drop_expired(batch);
  if (batch.empty()) return;
  batch_sizes_.observe(batch.size());
  std::vector<Sequence> sequences;
  for (const auto& job : batch) sequences.push_back(job.sequence);
  std::vector<Prediction> predictions;
  try {
    predictions = predict_(sequences);
  } catch (const std::exception&) {
    // One sequence must not fail the others of its batch.
    for (auto& job : batch) answer_one(job);
    return;
  }
  for (size_t k = 0; k < batch.size(); ++k) batch[k].answer.set_value(std::move(predictions[k]));
}

void Batcher::answer_one(Job& job) {
  try {
    job.answer.set_value(predict_({job.sequence})[0]);
  } catch (const std::exception&) {
    job.answer.set_exception(std::current_exception());
  }
}

// The calls of `run` for these have timed out and thrown.
void Batcher::drop_expired(std::vector<Job>& batch) const {
  const auto now = Clock::now();
  std::erase_if(batch, [&](const Job& job) { return job.arrival + limits_.timeout <= now; });
}
