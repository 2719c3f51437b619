const Tensor dense = x.contiguous();
return crc32(0, static_cast<const Bytef*>(dense.const_data_ptr()), dense.storage().nbytes());
