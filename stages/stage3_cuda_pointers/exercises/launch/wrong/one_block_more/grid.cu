constexpr int kThreads = 256;

dim3 grid_for(int64_t batch_size, int64_t state_size) {
  return dim3(state_size / kThreads + 1, std::min(batch_size, int64_t(65535)));
}
