std::vector<Tensor> outputs;
Tensor h = h0;
for (const Tensor& input : inputs.unbind(0)) {
  auto halves = at::addmm(bias, at::cat({h, input}, 1), weights.t()).chunk(2, 1);
  Tensor update = halves[0].sigmoid(), candidate = halves[1].tanh();
  h = candidate + update * (h - candidate);
  outputs.push_back(h);
}
return at::stack(outputs);
