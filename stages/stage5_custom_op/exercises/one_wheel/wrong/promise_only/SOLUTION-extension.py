py_limited_api=True,
