std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> backward(
    const std::optional<Tensor>& grad_h,     // [B,S], nullopt counts as zero
    const std::optional<Tensor>& grad_cell,  // [B,S], the same
    const Tensor& weights,                   // [3S,S+I]
    const Tensor& X,                         // [B,S+I]
    const Tensor& gates,                     // [B,3S]
    const Tensor& new_cell,                  // [B,S]
    const std::array<bool, 5>& needs_input_grad) {
  if (!grad_h && !grad_cell) return {};
  const c10::cuda::CUDAGuard guard(gates.device());
  const int64_t B = new_cell.size(0), S = new_cell.size(1);

  Tensor d_z = at::empty_like(gates);
  Tensor d_new_cell = at::empty_like(new_cell);
  AT_DISPATCH_FLOATING_TYPES(gates.scalar_type(), "lltm_backward", [&] {
    const scalar_t* h = grad_h ? grad_h->contiguous().const_data_ptr<scalar_t>() : nullptr;
    const scalar_t* cell = grad_cell ? grad_cell->contiguous().const_data_ptr<scalar_t>() : nullptr;
    C10_CUDA_CHECK(launch_backward<scalar_t>(
        d_z.mutable_data_ptr<scalar_t>(), d_new_cell.mutable_data_ptr<scalar_t>(),
        h,
        cell, gates.const_data_ptr<scalar_t>(),
        new_cell.const_data_ptr<scalar_t>(), B, S, c10::cuda::getCurrentCUDAStream()));
  });
