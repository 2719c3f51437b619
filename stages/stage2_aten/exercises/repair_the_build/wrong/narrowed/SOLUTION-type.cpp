using at::Tensor;

Tensor blend(const Tensor& a, const Tensor& b, float share);
