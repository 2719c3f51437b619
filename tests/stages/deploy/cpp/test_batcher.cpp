// The batcher with models that we make up. A sequence is known by its number of steps, and so is its
// prediction.
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <atomic>

#include "batcher.h"
#include "status.h"

namespace {

using namespace std::chrono_literals;

Sequence sequence_of(int64_t steps) { return {at::zeros({steps, 1}), {}}; }

// Its score is the number of steps. It fails for a batch with a sequence of 13 steps.
std::vector<Prediction> predict(const std::vector<Sequence>& batch) {
  std::vector<Prediction> predictions;
  for (const auto& sequence : batch) {
    if (sequence.steps.size(0) == 13) throw std::runtime_error("thirteen");
    predictions.push_back({at::full({1}, double(sequence.steps.size(0))), {}});
  }
  return predictions;
}

double score(const Prediction& prediction) { return prediction.scores.item<double>(); }

// The prediction's score of a request in a thread of its own.
std::future<double> ask(Batcher& batcher, int64_t steps) {
  return std::async(std::launch::async, [&batcher, steps] { return score(batcher.run(sequence_of(steps))); });
}

void wait_for(const Batcher& batcher, size_t count) {
  for (int k = 0; k < 1000 && batcher.waiting() != count; ++k) std::this_thread::sleep_for(5ms);
  ASSERT_EQ(batcher.waiting(), count);
}

TEST(Batcher, AnswersEachWithItsOwnPrediction) {
  Batcher batcher(predict, {4, 100, 1ms, 10s});
  std::vector<std::future<double>> answers;
  for (int64_t steps = 1; steps < 13; ++steps) answers.push_back(ask(batcher, steps));
  for (int64_t steps = 1; steps < 13; ++steps) EXPECT_EQ(answers[steps - 1].get(), steps);
}

TEST(Batcher, OneSequenceDoesNotFailTheOthersOfItsBatch) {
  Batcher batcher(predict, {3, 100, 10s, 20s});
  auto first = ask(batcher, 1), bad = ask(batcher, 13), last = ask(batcher, 2);
  EXPECT_EQ(first.get(), 1);
  EXPECT_EQ(last.get(), 2);
  EXPECT_THROW(bad.get(), std::runtime_error);
}

TEST(Batcher, NeverCallsTheModelWithMoreThanABatch) {
  std::atomic<size_t> largest = 0;
  Batcher batcher(
      [&](const auto& batch) {
        largest = std::max(largest.load(), batch.size());
        std::this_thread::sleep_for(20ms);
        return predict(batch);
      },
      {3, 100, 50ms, 10s});
  std::vector<std::future<double>> answers;
  for (int k = 0; k < 10; ++k) answers.push_back(ask(batcher, 1));
  for (auto& answer : answers) EXPECT_EQ(answer.get(), 1);
  EXPECT_EQ(largest, 3);
}

TEST(Batcher, RefusesWhatTheQueueCannotHold) {
  Batcher batcher(predict, {10, 2, 300ms, 10s});
  auto first = ask(batcher, 1), second = ask(batcher, 2);
  wait_for(batcher, 2);
  EXPECT_EQ(status_of([&] { batcher.run(sequence_of(3)); }), kUnavailable);
  EXPECT_EQ(first.get() + second.get(), 3);
}

TEST(Batcher, DoesNotComputeWhatNobodyWaitsFor) {
  std::atomic<int> calls = 0;
  Batcher batcher(
      [&](const auto& batch) {
        ++calls;
        return predict(batch);
      },
      {10, 10, 200ms, 20ms});
  EXPECT_EQ(status_of([&] { batcher.run(sequence_of(1)); }), kTimeout);
  wait_for(batcher, 0);
  EXPECT_EQ(calls, 0);
}

TEST(Batcher, FinishesWhatWaitsWhenItEnds) {
  std::vector<std::future<double>> answers;
  {
    Batcher batcher(predict, {10, 10, 10s, 20s});
    for (int64_t steps = 1; steps < 6; ++steps) answers.push_back(ask(batcher, steps));
    wait_for(batcher, 5);
  }
  for (int64_t steps = 1; steps < 6; ++steps) EXPECT_EQ(answers[steps - 1].get(), steps);
}

}  // namespace
