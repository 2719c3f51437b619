__global__ void kernel(int* x) {
  x[threadIdx.x] = 1
}
int main() { kernel<<<1, 1>>>(nullptr); }
