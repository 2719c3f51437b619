m.def("leak_(Tensor(a!) cell, Tensor share) -> ()");
m.def("leak(Tensor cell, Tensor share, Tensor lost) -> Tensor");
