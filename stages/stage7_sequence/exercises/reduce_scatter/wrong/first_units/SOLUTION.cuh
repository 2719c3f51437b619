cluster.sync();
for (int i = threadIdx.x; i < count; i += blockDim.x) {
  float sum = 0;
  for (int source = 0; source < blocks; ++source) sum += cluster.map_shared_rank(part, source)[i];
  d_h[i] = sum;
}
cluster.sync();
