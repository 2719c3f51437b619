std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> backward(
    const std::optional<Tensor>& grad_h,     // [B,S], nullopt counts as zero
    const std::optional<Tensor>& grad_cell,  // [B,S], the same
    const Tensor& weights,                   // [3S,S+I]
    const Tensor& X,                         // [B,S+I]
    const Tensor& gates,                     // [B,3S]
    const Tensor& new_cell,                  // [B,S]
    const std::array<bool, 5>& needs_input_grad) {

  const c10::cuda::CUDAGuard guard(gates.device());
  const int64_t B = new_cell.size(0), S = new_cell.size(1);

  // A gradient may come with any strides: that of a bare sum() is one number, expanded.
  Tensor contiguous_h = grad_h.value().contiguous();
  Tensor contiguous_cell = grad_cell.value().contiguous();
  Tensor d_z = at::empty_like(gates);
  Tensor d_new_cell = at::empty_like(new_cell);
  AT_DISPATCH_FLOATING_TYPES(gates.scalar_type(), "lltm_backward", [&] {
    C10_CUDA_CHECK(launch_backward<scalar_t>(
        d_z.mutable_data_ptr<scalar_t>(), d_new_cell.mutable_data_ptr<scalar_t>(),
        grad_h ? contiguous_h.const_data_ptr<scalar_t>() : nullptr,
        grad_cell ? contiguous_cell.const_data_ptr<scalar_t>() : nullptr, gates.const_data_ptr<scalar_t>(),
        new_cell.const_data_ptr<scalar_t>(), B, S, c10::cuda::getCurrentCUDAStream()));
  });
