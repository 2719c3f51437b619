for (int i = threadIdx.x; i < count; i += blockDim.x) d_h[i] = 0;
cluster.sync();
for (int k = threadIdx.x; k < S; k += blockDim.x)
  atomicAdd(cluster.map_shared_rank(d_h, k / units) + k % units, part[k]);
cluster.sync();
