Tensor positive = (z > 0).to(z.scalar_type());
return (positive + (1 - positive) * z.exp()).nan_to_num(1);
