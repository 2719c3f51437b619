const float* first = static_cast<const float*>(x.storage().data());
