auto rows_of = [](const Tensor& tensor) { return tensor.accessor<const float, 2>(); };
const auto rows = rows_of(x.contiguous());
const float* numbers = rows.data();
