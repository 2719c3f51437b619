#include "streams.h"

Streams::Turn Streams::begin(const std::string& id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  remove_expired();
  if (!entries_.contains(id) && entries_.size() >= limits_.count)
    throw Failure(kUnavailable, "there are ", entries_.size(),
                  " streams already; end one, or try again later");
  Entry& entry = entries_[id];
  if (entry.is_in_use) throw Failure(kConflict, "stream '", id, "' is in use by another request");
  entry.is_in_use = true;
  return Turn(*this, id, first_, 0);
}

Streams::Turn Streams::resume(const std::string& id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  remove_expired();
  const auto found = entries_.find(id);
  if (found == entries_.end())
    throw Failure(kNotFound, "there is no stream '", id, "', or it has expired after ",
                  limits_.expiry.count(), " s without a request; begin it with \"start\": true");
  Entry& entry = found->second;
  if (entry.is_in_use) throw Failure(kConflict, "stream '", id, "' is in use by another request");
  entry.is_in_use = true;
  return Turn(*this, id, entry.state, entry.steps);
}

size_t Streams::count() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return entries_.size();
}

void Streams::remove_expired() {
  const auto oldest = Clock::now() - limits_.expiry;
  std::erase_if(entries_,
                [&](const auto& named) { return !named.second.is_in_use && named.second.last_use < oldest; });
}

void Streams::Turn::keep(const State& state, int64_t steps) {
  // Copies: a row of a batch would keep the memory of the whole batch.
  State copy = {state.h.clone(), state.cell.clone()};
  const std::lock_guard<std::mutex> lock(streams_.mutex_);
  Entry& entry = streams_.entries_.at(id_);
  entry.state = std::move(copy);
  entry.steps = steps;
}

// The destructor removes a stream without steps.
void Streams::Turn::end() {
  const std::lock_guard<std::mutex> lock(streams_.mutex_);
  streams_.entries_.at(id_).steps = 0;
}

Streams::Turn::~Turn() {
  const std::lock_guard<std::mutex> lock(streams_.mutex_);
  const auto found = streams_.entries_.find(id_);
  found->second.is_in_use = false;
  found->second.last_use = Clock::now();
  if (found->second.steps == 0) streams_.entries_.erase(found);
}
