int main() {
  float *d_x, *h_y;
  cudaMalloc(&d_x, 1024);
  cudaMallocHost((void**)&h_y, 2048);
}
