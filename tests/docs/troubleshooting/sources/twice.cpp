// y = 2 x for n numbers that lie side by side: right only where x is contiguous.
extern "C" void twice(const float* x, float* y, long n) {
  for (long i = 0; i < n; ++i) {
    y[i] = 2 * x[i];
  }
}
