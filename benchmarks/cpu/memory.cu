// Kernels that move memory and do little else.

extern "C" __global__ void copy(int n, const float *from, float *to) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    to[i] = from[i];
}

extern "C" __global__ void triad(int n, float s, const float *b, const float *c, float *a) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    a[i] = b[i] + s * c[i];
}
