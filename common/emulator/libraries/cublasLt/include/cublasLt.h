// Stands for cuBLASLt's header of this name: its types and handles, for programs that include it without
// using it. A call of another one of its functions is an error that names the function.
#pragma once

#include "cublas_v2.h"

struct cublasLtContext {};
using cublasLtHandle_t = cublasLtContext*;
using cublasLtMatmulDesc_t = struct cublasLtMatmulDescOpaque_t*;
using cublasLtMatrixLayout_t = struct cublasLtMatrixLayoutOpaque_t*;
using cublasLtMatmulPreference_t = struct cublasLtMatmulPreferenceOpaque_t*;
using cublasLtMatrixTransformDesc_t = struct cublasLtMatrixTransformDescOpaque_t*;

struct cublasLtMatmulAlgo_t {
  unsigned long long data[8];
};
struct cublasLtMatmulHeuristicResult_t {
  cublasLtMatmulAlgo_t algo;
  std::size_t workspaceSize;
  cublasStatus_t state;
  float wavesCount;
  int reserved[4];
};

enum cublasLtMatmulDescAttributes_t {
  CUBLASLT_MATMUL_DESC_COMPUTE_TYPE = 0,
  CUBLASLT_MATMUL_DESC_SCALE_TYPE = 1,
  CUBLASLT_MATMUL_DESC_POINTER_MODE = 2,
  CUBLASLT_MATMUL_DESC_TRANSA = 3,
  CUBLASLT_MATMUL_DESC_TRANSB = 4,
  CUBLASLT_MATMUL_DESC_TRANSC = 5,
  CUBLASLT_MATMUL_DESC_FILL_MODE = 6,
  CUBLASLT_MATMUL_DESC_EPILOGUE = 7,
  CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8,
  CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE = 10,
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER = 11,
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD = 12,
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE = 13,
  CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE = 26
};
enum cublasLtMatrixLayoutAttribute_t {
  CUBLASLT_MATRIX_LAYOUT_TYPE = 0,
  CUBLASLT_MATRIX_LAYOUT_ORDER = 1,
  CUBLASLT_MATRIX_LAYOUT_ROWS = 2,
  CUBLASLT_MATRIX_LAYOUT_COLS = 3,
  CUBLASLT_MATRIX_LAYOUT_LD = 4,
  CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,
  CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6
};
enum cublasLtOrder_t { CUBLASLT_ORDER_COL = 0, CUBLASLT_ORDER_ROW = 1 };
enum cublasLtMatmulPreferenceAttributes_t {
  CUBLASLT_MATMUL_PREF_SEARCH_MODE = 0,
  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1
};
enum cublasLtEpilogue_t {
  CUBLASLT_EPILOGUE_DEFAULT = 1,
  CUBLASLT_EPILOGUE_RELU = 2,
  CUBLASLT_EPILOGUE_BIAS = 4,
  CUBLASLT_EPILOGUE_RELU_BIAS = 6,
  CUBLASLT_EPILOGUE_GELU = 32,
  CUBLASLT_EPILOGUE_GELU_BIAS = 36,
  CUBLASLT_EPILOGUE_GELU_AUX = 160,
  CUBLASLT_EPILOGUE_GELU_AUX_BIAS = 164,
  CUBLASLT_EPILOGUE_DGELU = 192,
  CUBLASLT_EPILOGUE_DGELU_BGRAD = 208,
  CUBLASLT_EPILOGUE_BGRADA = 256,
  CUBLASLT_EPILOGUE_BGRADB = 512
};

EMULATOR_BEGIN
inline cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return *handle = new cublasLtContext, CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return delete handle, CUBLAS_STATUS_SUCCESS;
}
#define EMULATOR_CUBLASLT_REFUSED(name) \
  template <typename... Arguments>      \
  __attribute__((error("the emulator does not support " #name))) cublasStatus_t name(Arguments&&...);
EMULATOR_CUBLASLT_REFUSED(cublasLtMatmul)
EMULATOR_CUBLASLT_REFUSED(cublasLtMatmulDescCreate)
EMULATOR_CUBLASLT_REFUSED(cublasLtMatmulDescSetAttribute)
EMULATOR_CUBLASLT_REFUSED(cublasLtMatmulDescDestroy)
EMULATOR_CUBLASLT_REFUSED(cublasLtMatrixLayoutCreate)
EMULATOR_CUBLASLT_REFUSED(cublasLtMatrixLayoutSetAttribute)
EMULATOR_CUBLASLT_REFUSED(cublasLtMatrixLayoutDestroy)
EMULATOR_CUBLASLT_REFUSED(cublasLtMatmulPreferenceCreate)
EMULATOR_CUBLASLT_REFUSED(cublasLtMatmulPreferenceSetAttribute)
EMULATOR_CUBLASLT_REFUSED(cublasLtMatmulPreferenceDestroy)
EMULATOR_CUBLASLT_REFUSED(cublasLtMatmulAlgoGetHeuristic)
EMULATOR_CUBLASLT_REFUSED(cublasLtMatrixTransform)
#undef EMULATOR_CUBLASLT_REFUSED
EMULATOR_END
