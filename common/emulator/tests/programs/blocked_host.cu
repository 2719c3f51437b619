// Several threads of the host enqueue work, and the main one waits for it without a function of CUDA: on a
// condition variable that a callback notifies. It is correct, so there are no findings.
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

constexpr int N = 1 << 10, WORKERS = 4;

__global__ void add_one(int* x) { x[threadIdx.x] += 1; }

struct Worker {
  int number;
  int* on_host;
  int* on_device;
  cudaStream_t stream;
};

std::mutex mutex;
std::condition_variable changed;
int finished = 0;

void CUDART_CB finish(cudaStream_t, cudaError_t, void*) {
  const std::lock_guard lock(mutex);
  finished++;
  changed.notify_one();
}

void enqueue(Worker& worker) {
  cudaStreamCreate(&worker.stream);
  cudaMallocHost(&worker.on_host, N * sizeof(int));
  cudaMalloc(&worker.on_device, N * sizeof(int));
  for (int i = 0; i < N; i++) worker.on_host[i] = worker.number + i;
  const size_t bytes = N * sizeof(int);
  cudaMemcpyAsync(worker.on_device, worker.on_host, bytes, cudaMemcpyHostToDevice, worker.stream);
  add_one<<<1, N, 0, worker.stream>>>(worker.on_device);
  cudaMemcpyAsync(worker.on_host, worker.on_device, bytes, cudaMemcpyDeviceToHost, worker.stream);
  cudaStreamAddCallback(worker.stream, finish, nullptr, 0);
}

int main() {
  std::vector<Worker> workers(WORKERS);
  std::vector<std::thread> threads;
  for (int k = 0; k < WORKERS; k++) {
    workers[k].number = k;
    threads.emplace_back(enqueue, std::ref(workers[k]));
  }
  for (std::thread& thread : threads) thread.join();
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [] { return finished == WORKERS; });
  }
  int wrong = 0;
  for (const Worker& worker : workers) {
    for (int i = 0; i < N; i++) wrong += worker.on_host[i] != worker.number + i + 1;
    cudaFreeHost(worker.on_host);
    cudaFree(worker.on_device);
    cudaStreamDestroy(worker.stream);
  }
  printf("%d wrong\n", wrong);
  return wrong;
}
