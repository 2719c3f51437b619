const float* from = x.const_data_ptr<float>();
