cluster.sync();
if (threadIdx.x == 0) {
  for (int i = 0; i < count; ++i) {
    float sum = 0;
    for (int source = 0; source < blocks; ++source)
      sum += cluster.map_shared_rank(part, source)[rank * units + i];
    d_h[i] = sum;
  }
}
cluster.sync();
