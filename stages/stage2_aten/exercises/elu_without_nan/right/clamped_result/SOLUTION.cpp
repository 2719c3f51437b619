return z.exp().clamp_max(1);
