m.def("leak_(Tensor(a!) cell, Tensor(b!) share) -> ()");
m.def("leak(Tensor cell, Tensor share, Tensor(a!) lost) -> Tensor");
