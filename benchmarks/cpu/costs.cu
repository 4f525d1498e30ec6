// Kernels that do one thing, to find out what it costs.

// Blocks that do next to nothing.
extern "C" __global__ void touch(int *x) {
  if (threadIdx.x == 0 && blockIdx.x == 0)
    ++*x;
}

// Every thread does a little, and waits for the others, again and again.
extern "C" __global__ void wait_in_kernel(int times, float *x) {
  float own = threadIdx.x;
  for (int i = 0; i < times; ++i) {
    own = own * 0.5f + 1.0f;
    __syncthreads();
  }
  if (own < 0.0f)
    *x = own;
}

// The same, where the barrier is in a function that is called.
static __device__ __noinline__ float step(float own) {
  __syncthreads();
  return own * 0.5f + 1.0f;
}

extern "C" __global__ void wait_in_function(int times, float *x) {
  float own = threadIdx.x;
  for (int i = 0; i < times; ++i)
    own = step(own);
  if (own < 0.0f)
    *x = own;
}

extern "C" __global__ void shuffle(int times, float *x) {
  float own = threadIdx.x;
  for (int i = 0; i < times; ++i)
    own += __shfl_xor_sync(0xffffffffu, own, 1 + (i & 15)) * 0.5f;
  if (own < 0.0f)
    *x = own;
}

extern "C" __global__ void add_atomically(int times, int *x) {
  for (int i = 0; i < times; ++i)
    atomicAdd(x + (threadIdx.x & 31), 1);
}

extern "C" __global__ void add(const float *a, const float *b, float *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    c[i] = a[i] + b[i];
}
