return crc32(0, static_cast<const Bytef*>(x.const_data_ptr()), x.nbytes());
