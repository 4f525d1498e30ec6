// As compilers write: their own names for types, labels and gotos, arrays as loose numbers, everything in one function.
#if (((__CUDACC_VER_MAJOR__ == 11) && (__CUDACC_VER_MINOR__ >= 4)) || (__CUDACC_VER_MAJOR__ > 11))
#define ENABLE_L2_PREFETCH 1
#else
#define ENABLE_L2_PREFETCH 0
#endif
#define uint unsigned int
#define uchar unsigned char
#define ushort unsigned short
typedef long long int int64_t;
typedef unsigned long long int uint64_t;
typedef signed char int8_t;
#define INT64_MAX_OF_SOURCE 0x7fffffffffffffffLL
#ifndef M_LOG2E
#define M_LOG2E 1.4426950408889634
#endif

extern "C" __global__ void __launch_bounds__(64) fused_conv2d_relu_kernel0(float* __restrict__ placeholder, float* __restrict__ placeholder1, float* __restrict__ T_relu) {
  float compute[2];
  __shared__ float pad_temp_shared[100];
  __shared__ float placeholder_shared[9];
  compute[(0)] = 0.000000e+00f;
  compute[(1)] = 0.000000e+00f;
  for (int rc_outer = 0; rc_outer < 3; ++rc_outer) {
    __syncthreads();
    for (int ax0_inner = 0; ax0_inner < 4; ++ax0_inner) {
      if (((((int)threadIdx.x) * 4) + ax0_inner) < 100) {
        pad_temp_shared[(((((int)threadIdx.x) * 4) + ax0_inner))] = (((((1 <= (((((int)threadIdx.x) * 4) + ax0_inner) / 10)) && ((((((int)threadIdx.x) * 4) + ax0_inner) / 10) < 9)) && (1 <= (((((int)threadIdx.x) * 4) + ax0_inner) % 10))) && ((((((int)threadIdx.x) * 4) + ax0_inner) % 10) < 9)) ? placeholder[((((rc_outer * 64) + ((((((int)threadIdx.x) * 4) + ax0_inner) / 10) * 8)) + (((((int)threadIdx.x) * 4) + ax0_inner) % 10)) - 9)] : 0.000000e+00f);
      }
    }
    if (((int)threadIdx.x) < 9) {
      placeholder_shared[(((int)threadIdx.x))] = placeholder1[(((((int)blockIdx.x) * 27) + (rc_outer * 9)) + ((int)threadIdx.x))];
    }
    __syncthreads();
    for (int ry_inner = 0; ry_inner < 3; ++ry_inner) {
      #pragma unroll
      for (int rx_inner = 0; rx_inner < 3; ++rx_inner) {
        compute[(0)] = (compute[(0)] + (pad_temp_shared[((((((((int)threadIdx.x) >> 3) * 10) + (((int)threadIdx.x) & 7)) + (ry_inner * 10)) + rx_inner))] * placeholder_shared[(((ry_inner * 3) + rx_inner))]));
        if ((((int)threadIdx.x) >> 3) < 4) {
          compute[(1)] = (compute[(1)] + (pad_temp_shared[(((((((((int)threadIdx.x) >> 3) * 10) + 40) + (((int)threadIdx.x) & 7)) + (ry_inner * 10)) + rx_inner))] * placeholder_shared[(((ry_inner * 3) + rx_inner))]));
        }
      }
    }
  }
  if ((((int)threadIdx.x) >> 3) < 4) {
    T_relu[(((((int)blockIdx.x) * 64) + ((int)threadIdx.x)))] = max(compute[(0)], 0.000000e+00f);
    T_relu[((((((int)blockIdx.x) * 64) + ((int)threadIdx.x)) + 32))] = max(compute[(1)], 0.000000e+00f);
  }
}

// Arrays as memory, parent, counts, address, shape and strides, and control flow as blocks with labels.
extern "C" __global__ void _ZN8__main__9axpy_wrapB2v1B92cw51cXTLSUwv1sDUaKthoaNgqamjgOR3W3CwAkMXLaJtQYkOIgxJU0gCqOkEJoHkbttqdVhoqlspQGNFHSgJ5BnXagXEd2(
    double a, void *x_meminfo, void *x_parent, int64_t x_nitems, int64_t x_itemsize, char *x_data, int64_t x_shape,
    int64_t x_stride, void *y_meminfo, void *y_parent, int64_t y_nitems, int64_t y_itemsize, char *y_data,
    int64_t y_shape, int64_t y_stride) {
  int64_t i_1, step_2;
  bool cond_3;
entry:
  i_1 = (int64_t)((uint64_t)blockIdx.x * (uint64_t)blockDim.x + (uint64_t)threadIdx.x);
  step_2 = (int64_t)blockDim.x * (int64_t)gridDim.x;
  goto B12;
B12:
  cond_3 = i_1 < x_shape;
  if (cond_3) goto B20;
  goto B48;
B20: {
  int64_t index_4 = i_1 < 0 ? i_1 + x_nitems : i_1;
  double v_5 = *(double *)(x_data + index_4 * x_stride);
  double v_6 = *(double *)(y_data + index_4 * y_stride);
  *(double *)(y_data + index_4 * y_stride) = __fma_rn(a, v_5, v_6);
  i_1 = i_1 + step_2;
  goto B12;
}
B48:
  return;
}

// A softmax as a code generator writes it: pairs of loads, a barrier at every step, values of every kind.
extern "C" __global__ void triton_like_0d1d2de(float* in_ptr0, float* out_ptr2, int xnumel, int rnumel) {
  extern __shared__ uchar smem[];
  float* red = (float*)(smem + 0);
  const int xindex = (int)blockIdx.x;
  const uint lane = threadIdx.x & 31u, warp = threadIdx.x >> 5u;
  float tmp1 = __int_as_float(0xff800000), tmp6 = 0.0f;
  for (int roffset = 0; roffset < rnumel; roffset += 2 * (int)blockDim.x) {
    const int rindex = roffset + 2 * (int)threadIdx.x;
    const bool rmask = rindex + 1 < rnumel;
    float2 tmp0 = rmask ? *(float2*)(in_ptr0 + (rindex + rnumel * xindex)) : make_float2(tmp1, tmp1);
    tmp1 = fmaxf(tmp1, fmaxf(tmp0.x, tmp0.y));
  }
  tmp1 = fmaxf(tmp1, __shfl_xor_sync(0xffffffffu, tmp1, 16)); tmp1 = fmaxf(tmp1, __shfl_xor_sync(0xffffffffu, tmp1, 8));
  tmp1 = fmaxf(tmp1, __shfl_xor_sync(0xffffffffu, tmp1, 4)); tmp1 = fmaxf(tmp1, __shfl_xor_sync(0xffffffffu, tmp1, 2));
  tmp1 = fmaxf(tmp1, __shfl_xor_sync(0xffffffffu, tmp1, 1));
  if (lane == 0u) red[warp] = tmp1;
  __syncthreads();
  tmp1 = red[lane & ((blockDim.x >> 5u) - 1u)];
  tmp1 = fmaxf(tmp1, __shfl_xor_sync(0xffffffffu, tmp1, 1));
  __syncthreads();
  for (int rindex = (int)threadIdx.x; rindex < rnumel; rindex += (int)blockDim.x) {
    tmp6 = tmp6 + exp2f((in_ptr0[rindex + rnumel * xindex] - tmp1) * (float)M_LOG2E);
  }
  for (uint s = 16u; s != 0u; s >>= 1u) tmp6 += __shfl_xor_sync(0xffffffffu, tmp6, s);
  if (lane == 0u) red[warp] = tmp6;
  __syncthreads();
  tmp6 = red[0] + red[1];
  for (int rindex = (int)threadIdx.x; rindex < rnumel; rindex += (int)blockDim.x) {
    float tmp9 = exp2f((in_ptr0[rindex + rnumel * xindex] - tmp1) * (float)M_LOG2E);
    out_ptr2[rindex + rnumel * xindex] = __fdividef(tmp9, tmp6);
  }
}

// Elementwise code with a chain of casts, wide indices, and a select for each branch.
extern "C" __global__ void fused_where_cast(bool* in0, int8_t* in1, ushort* in2, int64_t* out, int64_t n) {
  for (int64_t i = (int64_t)(((int64_t)blockIdx.x) * 256ll + (int64_t)threadIdx.x); i < n; i += ((int64_t)gridDim.x) * 256ll) {
    bool v0 = in0[i]; int64_t v1 = static_cast<int64_t>(in1[i]); uint64_t v2 = static_cast<uint64_t>(in2[i]);
    int64_t v3 = v0 ? v1 * -3ll : static_cast<int64_t>(v2 << 33ull) >> 1;
    out[i] = v3 > INT64_MAX_OF_SOURCE ? 0 : v3 ^ (static_cast<int64_t>(v0) << 62);
  }
}
