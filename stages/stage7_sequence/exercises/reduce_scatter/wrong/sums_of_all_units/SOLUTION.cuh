cluster.sync();
for (int k = threadIdx.x; k < S; k += blockDim.x) {
  float sum = 0;
  for (int source = 0; source < blocks; ++source) sum += cluster.map_shared_rank(part, source)[k];
  if (k / units == rank) d_h[k % units] = sum;
}
cluster.sync();
