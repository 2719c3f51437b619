// The table of streams.
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <thread>

#include "status.h"
#include "streams.h"

namespace {

using namespace std::chrono_literals;

State state_of(double value) { return {at::full({2}, value), at::full({2}, -value)}; }

double value_of(const State& state) { return state.h[0].item<double>(); }

TEST(Streams, KeepTheStateBetweenTurns) {
  Streams streams(state_of(0), {10, 60s});
  {
    auto turn = streams.begin("a");
    EXPECT_EQ(value_of(turn.state()), 0);
    EXPECT_EQ(turn.steps(), 0);
    turn.keep(state_of(1), 3);
  }
  const auto turn = streams.resume("a");
  EXPECT_EQ(value_of(turn.state()), 1);
  EXPECT_EQ(turn.state().cell[0].item<double>(), -1);
  EXPECT_EQ(turn.steps(), 3);
}

TEST(Streams, AreSeparate) {
  Streams streams(state_of(0), {10, 60s});
  streams.begin("a").keep(state_of(1), 1);
  streams.begin("b").keep(state_of(2), 1);
  EXPECT_EQ(value_of(streams.resume("a").state()), 1);
  EXPECT_EQ(value_of(streams.resume("b").state()), 2);
}

TEST(Streams, OneWhoseFirstRequestFailsLeavesNothing) {
  Streams streams(state_of(0), {10, 60s});
  streams.begin("a");
  EXPECT_EQ(streams.count(), 0);
  EXPECT_EQ(status_of([&] { streams.resume("a"); }), kNotFound);
}

TEST(Streams, ATurnThatFailsLeavesItsStreamAsItWas) {
  Streams streams(state_of(0), {10, 60s});
  streams.begin("a").keep(state_of(1), 1);
  streams.resume("a");
  streams.begin("a");  // a new beginning that fails
  EXPECT_EQ(value_of(streams.resume("a").state()), 1);
  EXPECT_EQ(streams.resume("a").steps(), 1);
}

TEST(Streams, ATurnCopiesTheState) {
  Streams streams(state_of(0), {10, 60s});
  const State kept = state_of(1);
  streams.begin("a").keep(kept, 1);
  kept.h.fill_(5);
  EXPECT_EQ(value_of(streams.resume("a").state()), 1);
}

TEST(Streams, OnlyOneTurnAtATime) {
  Streams streams(state_of(0), {10, 60s});
  auto turn = streams.begin("a");
  EXPECT_EQ(status_of([&] { streams.begin("a"); }), kConflict);
  EXPECT_EQ(status_of([&] { streams.resume("a"); }), kConflict);
  EXPECT_EQ(status_of([&] { streams.begin("b"); }), 200);
}

TEST(Streams, HaveALargestNumberAndExpire) {
  Streams streams(state_of(0), {2, 1s});
  streams.begin("a").keep(state_of(1), 1);
  auto in_use = streams.begin("b");
  in_use.keep(state_of(2), 1);
  EXPECT_EQ(status_of([&] { streams.begin("c"); }), kUnavailable);
  std::this_thread::sleep_for(1100ms);
  EXPECT_EQ(status_of([&] { streams.resume("a"); }), kNotFound);
  EXPECT_EQ(streams.count(), 1);  // the one in use does not expire
  EXPECT_EQ(status_of([&] { streams.begin("c").keep(state_of(3), 1); }), 200);
}

TEST(Streams, End) {
  Streams streams(state_of(0), {10, 60s});
  streams.begin("a").keep(state_of(1), 1);
  streams.resume("a").end();
  EXPECT_EQ(streams.count(), 0);
}

}  // namespace
