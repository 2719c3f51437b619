const bool is_due = is_closed_ || waiting_.size() >= limits_.batch ||
                    (!waiting_.empty() && waiting_.front().arrival + limits_.delay <= now);
if (!is_due) return {};
const auto end = waiting_.begin() + static_cast<int64_t>(std::min(waiting_.size(), limits_.batch));
for (auto one = waiting_.begin(); one != end; ++one) batch.push_back(one->request);
waiting_.erase(waiting_.begin(), end);
