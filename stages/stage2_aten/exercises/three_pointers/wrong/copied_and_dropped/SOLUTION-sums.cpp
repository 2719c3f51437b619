const float* numbers = x.clone(at::MemoryFormat::Contiguous).const_data_ptr<float>();
