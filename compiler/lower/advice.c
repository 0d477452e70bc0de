/* What to do instead, for operators that have no line in the table: by the beginning of their name. */
#include "compiler/lower/lower.h"

#include <string.h>

#define RANDOM "random numbers can't be repeated: draw them outside and pass them as an input"
#define DECOMPOSITION "the device has no matrix decompositions: compute this outside and pass the result as an input or a buffer"
#define FOURIER "write the transform as a product with its matrix: cosines and sines as buffers"
#define DATA_DEPENDENT "shapes and numbers that depend on data are known at run time only: give the result a fixed size, or a mask"
#define GRADIENT "export the forward pass alone, in eval mode under no_grad"
#define QUANTIZED "dequantize the weights before the export; int8 and int4 weights may be unpacked by ATen operations in the model"

static const struct {
  const char *start, *why, *advice;
} families[] = {
    /* outside ATen */
    {"transformers.grouped_mm", "an operator outside ATen: grouped products of experts", "load the model with experts_implementation=\"batched_mm\" before the export"},
    {"torchvision.nms", "an operator outside ATen: boxes that are left depend on data", "end the model in front of it and select the boxes outside"},
    {"torchvision.roi_align", "an operator outside ATen: regions that depend on data", "end the model in front of it, or sample with grid_sample"},
    {"torchvision.roi_pool", "an operator outside ATen: regions that depend on data", "end the model in front of it"},
    {"torchvision.ps_roi", "an operator outside ATen: regions that depend on data", "end the model in front of it"},
    {"torchvision.deform_conv2d", "an operator outside ATen: samples at places that depend on data", "sample with grid_sample, then multiply"},
    {"flash_attn", "an operator outside ATen: a kernel for another device", "load the model with attn_implementation=\"sdpa\""},
    {"xformers", "an operator outside ATen: a kernel for another device", "use scaled_dot_product_attention"},
    {"higher_order.flex_attention", "an operator outside ATen: attention with code of its own", "use scaled_dot_product_attention with a mask"},
    {"mamba_ssm", "an operator outside ATen: a kernel for another device", "uninstall the fused kernels, so that the model uses its plain form"},
    {"causal_conv1d", "an operator outside ATen: a kernel for another device", "uninstall the fused kernels, so that the model uses its plain form"},
    {"bitsandbytes", "an operator outside ATen: quantized weights", QUANTIZED},
    {"torchao", "an operator outside ATen: quantized weights", QUANTIZED},
    {"quantized_decomposed", "an operator outside ATen: quantized weights", QUANTIZED},
    {"quantized.", "an operator outside ATen: quantized weights", QUANTIZED},
    {"triton", "an operator outside ATen: a kernel for another device", "use the plain PyTorch form of this module"},
    {"vllm", "an operator outside ATen: a kernel for another device", "use the plain PyTorch form of this module"},
    /* of ATen */
    {"aten.rand", "random numbers", RANDOM},
    {"aten.normal", "random numbers", RANDOM},
    {"aten.bernoulli", "random numbers", RANDOM},
    {"aten.multinomial", "random numbers", RANDOM},
    {"aten.uniform", "random numbers", RANDOM},
    {"aten.exponential", "random numbers", RANDOM},
    {"aten.linalg_", "a matrix decomposition", DECOMPOSITION},
    {"aten._linalg_", "a matrix decomposition", DECOMPOSITION},
    {"aten.inverse", "a matrix decomposition", DECOMPOSITION},
    {"aten.pinverse", "a matrix decomposition", DECOMPOSITION},
    {"aten.det.", "a matrix decomposition", DECOMPOSITION},
    {"aten.logdet", "a matrix decomposition", DECOMPOSITION},
    {"aten.slogdet", "a matrix decomposition", DECOMPOSITION},
    {"aten.cholesky", "a matrix decomposition", DECOMPOSITION},
    {"aten.svd", "a matrix decomposition", DECOMPOSITION},
    {"aten.qr", "a matrix decomposition", DECOMPOSITION},
    {"aten.lu", "a matrix decomposition", DECOMPOSITION},
    {"aten.matrix_exp", "a matrix decomposition", DECOMPOSITION},
    {"aten.triangular_solve", "a matrix decomposition", DECOMPOSITION},
    {"aten.geqrf", "a matrix decomposition", DECOMPOSITION},
    {"aten.ormqr", "a matrix decomposition", DECOMPOSITION},
    {"aten.fft_", "a Fourier transform", FOURIER},
    {"aten._fft_", "a Fourier transform", FOURIER},
    {"aten.stft", "a Fourier transform", FOURIER},
    {"aten.istft", "a Fourier transform", FOURIER},
    {"aten.masked_select", "a size that depends on data", DATA_DEPENDENT},
    {"aten.argwhere", "a size that depends on data", DATA_DEPENDENT},
    {"aten.unique", "a size that depends on data", DATA_DEPENDENT},
    {"aten._unique", "a size that depends on data", DATA_DEPENDENT},
    {"aten.nonzero", "a size that depends on data", DATA_DEPENDENT},
    {"aten.repeat_interleave.Tensor", "a size that depends on data", DATA_DEPENDENT},
    {"aten.repeat_interleave.self_Tensor", "a size that depends on data", DATA_DEPENDENT},
    {"aten.equal", "a truth that depends on data", DATA_DEPENDENT},
    {"aten.allclose", "a truth that depends on data", DATA_DEPENDENT},
    {"aten.quantize_", "quantized weights", QUANTIZED},
    {"aten.fake_quantize", "quantized weights", QUANTIZED},
    {"aten.conj", "complex numbers", "keep real and imaginary parts as tensors of their own"},
    {"aten.complex", "complex numbers", "keep real and imaginary parts as tensors of their own"},
};

const char *lw_advice(const char *target, const char **why)
{
  for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
    if (!strncmp(target, families[i].start, strlen(families[i].start))) {
      *why = families[i].why;
      return families[i].advice;
    }
  bool gradient = strstr(target, "_backward");
  bool foreign = strncmp(target, "aten.", 5) && strncmp(target, "prims.", 6);
  *why = foreign ? "an operator outside ATen" : gradient ? "a gradient" : "this overload is not supported";
  return foreign    ? "replace this operator by ATen operations before the export"
         : gradient ? GRADIENT
                    : "express it with other operations; `stickwright ops` lists what is supported";
}
