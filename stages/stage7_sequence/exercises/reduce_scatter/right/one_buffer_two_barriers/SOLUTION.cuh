for (int owner = 0; owner < blocks; ++owner) {
  float* const of_owner = cluster.map_shared_rank(received, owner) + rank * units;
  for (int i = threadIdx.x; i < units && owner * units + i < S; i += blockDim.x)
    of_owner[i] = part[owner * units + i];
}
cluster.sync();
for (int i = threadIdx.x; i < count; i += blockDim.x) {
  d_h[i] = received[i];
  for (int source = 1; source < blocks; ++source) d_h[i] += received[source * units + i];
}
cluster.sync();
