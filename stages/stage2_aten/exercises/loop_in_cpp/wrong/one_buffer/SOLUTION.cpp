const int64_t S = h0.size(1);
std::vector<Tensor> outputs;
Tensor h = h0.clone();
for (const Tensor& input : inputs.unbind(0)) {
  Tensor z = at::addmm(bias, at::cat({h, input}, 1), weights.t());
  Tensor update = z.narrow(1, 0, S).sigmoid_(), candidate = z.narrow(1, S, S).tanh_();
  at::lerp_out(h, candidate, h, update);
  outputs.push_back(h);
}
return at::stack(outputs);
