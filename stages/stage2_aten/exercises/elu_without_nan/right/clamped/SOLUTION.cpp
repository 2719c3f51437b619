return z.clamp_max(0).exp();
