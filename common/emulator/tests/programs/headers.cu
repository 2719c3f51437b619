// Kernels in a separate header, templates, and launches from several host threads.
#include <thread>
#include <vector>

#include "parts/scale.cuh"

int main() {
  std::vector<std::thread> threads;
  std::vector<double> sums(4);
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&, t] {
      double *d_x, h_x[64];
      cudaStream_t stream = cudaStreamPerThread;
      for (int i = 0; i < 64; i++) h_x[i] = i + t;
      cudaMalloc(&d_x, sizeof(h_x));
      cudaMemcpyAsync(d_x, h_x, sizeof(h_x), cudaMemcpyHostToDevice, stream);
      scale<double, 2><<<2, 32, 0, stream>>>(d_x, 64);
      cudaMemcpyAsync(h_x, d_x, sizeof(h_x), cudaMemcpyDeviceToHost, stream);
      cudaStreamSynchronize(stream);
      for (double x : h_x) sums[t] += x;
      cudaFree(d_x);
    });
  for (std::thread& thread : threads) thread.join();
  return sums[0] == 4032 && sums[3] == 4416 ? 0 : 1;
}
