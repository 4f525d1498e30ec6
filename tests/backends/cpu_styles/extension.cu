// In the style of extensions of a tensor library: templates over the type, accessors, accumulation in a wider type.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cfloat>
#include <limits>
#include <type_traits>
#include <utility>

#define CUDA_KERNEL_LOOP(i, n) \
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += blockDim.x * gridDim.x)
#define CEIL_DIV(m, n) (((m) + (n)-1) / (n))

// What everybody has for old devices, and what must not stand in the way of new ones.
#if __CUDA_ARCH__ < 600
static __inline__ __device__ double atomicAdd(double *address, double val) {
  unsigned long long int *address_as_ull = (unsigned long long int *)address;
  unsigned long long int old = *address_as_ull, assumed;
  do {
    assumed = old;
    old = atomicCAS(address_as_ull, assumed, __double_as_longlong(val + __longlong_as_double(assumed)));
  } while (assumed != old);
  return __longlong_as_double(old);
}
#endif

namespace ext {
namespace detail {
template <typename T> struct opmath { using type = T; };
template <> struct opmath<__half> { using type = float; };
template <> struct opmath<__nv_bfloat16> { using type = float; };
template <typename T> using opmath_t = typename opmath<T>::type;

template <typename T> struct RestrictPtrTraits { typedef T *__restrict__ PtrType; };

// Sizes and strides by value, with one type for each number of dimensions.
template <typename T, size_t N, template <typename U> class PtrTraits = RestrictPtrTraits, typename index_t = int>
struct PackedTensorAccessor {
  typename PtrTraits<T>::PtrType data_;
  index_t sizes_[N], strides_[N];
  struct Row {
    T *data;
    const index_t *sizes, *strides;
    __device__ T &operator[](index_t i) const { return data[i * strides[0]]; }
  };
  __device__ Row operator[](index_t i) const { return Row{data_ + i * strides_[0], sizes_ + 1, strides_ + 1}; }
  __device__ index_t size(int i) const { return sizes_[i]; }
};
}  // namespace detail

template <typename scalar_t>
__device__ __forceinline__ scalar_t sigmoid(scalar_t z) {
  return 1.0 / (1.0 + exp(-z));
}
template <typename scalar_t>
__device__ __forceinline__ scalar_t elu(scalar_t z, scalar_t alpha = 1.0) {
  return fmax(0.0, z) + fmin(0.0, alpha * (exp(z) - 1.0));
}

template <typename scalar_t>
__global__ void lstm_forward(const detail::PackedTensorAccessor<scalar_t, 2> gates, scalar_t *__restrict__ cell,
                             const size_t state_size) {
  const int n = blockIdx.y;
  const int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c < gates.size(1) / 3) {
    const auto input = sigmoid(gates[n][c]);
    const auto output = sigmoid(gates[n][c + state_size]);
    const auto candidate = elu(gates[n][c + 2 * state_size]);
    cell[n * state_size + c] = tanh(candidate * input) * output;
  }
}

// Vectors of any type that are loaded at once.
template <typename scalar_t, int vec_size>
struct alignas(sizeof(scalar_t) * vec_size) aligned_vector {
  scalar_t val[vec_size];
};

template <int vec_size, typename scalar_t, typename func_t>
__device__ __forceinline__ void elementwise(scalar_t *out, const scalar_t *in, int n, func_t f) {
  using vec_t = aligned_vector<scalar_t, vec_size>;
  const int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if ((idx + 1) * vec_size <= n) {
    vec_t v = *reinterpret_cast<const vec_t *>(in + idx * vec_size);
#pragma unroll
    for (int i = 0; i < vec_size; ++i) v.val[i] = f(v.val[i]);
    *reinterpret_cast<vec_t *>(out + idx * vec_size) = v;
  } else {
    for (int i = idx * vec_size; i < n; ++i) out[i] = f(in[i]);
  }
}

template <typename scalar_t>
__global__ __launch_bounds__(256, 2) void gelu(scalar_t *out, const scalar_t *in, int n) {
  using opmath_t = detail::opmath_t<scalar_t>;
  elementwise<4>(out, in, n, [] __device__(scalar_t a) -> scalar_t {
    constexpr opmath_t kAlpha = 0.70710678118654752440;
    return static_cast<opmath_t>(a) * opmath_t(0.5) * (opmath_t(1) + erff(static_cast<opmath_t>(a) * kAlpha));
  });
}

// Welford's mean and variance, a struct in shuffles, with a class of operations.
template <typename acc_t>
struct WelfordData {
  acc_t mean, m2;
  int n;
};
template <typename acc_t>
struct WelfordOps {
  __device__ WelfordData<acc_t> reduce(WelfordData<acc_t> acc, acc_t data) const {
    acc_t delta = data - acc.mean;
    acc_t new_mean = acc.mean + delta / (acc.n + 1);
    return {new_mean, acc.m2 + delta * (data - new_mean), acc.n + 1};
  }
  __device__ WelfordData<acc_t> combine(WelfordData<acc_t> a, WelfordData<acc_t> b) const {
    if (a.n == 0) return b;
    if (b.n == 0) return a;
    acc_t delta = b.mean - a.mean;
    int n = a.n + b.n;
    return {a.mean + delta * b.n / n, a.m2 + b.m2 + delta * delta * a.n * b.n / n, n};
  }
  __device__ WelfordData<acc_t> warp_shfl_down(WelfordData<acc_t> acc, int offset) const {
    return {__shfl_down_sync(0xffffffff, acc.mean, offset), __shfl_down_sync(0xffffffff, acc.m2, offset),
            __shfl_down_sync(0xffffffff, acc.n, offset)};
  }
};
template <typename scalar_t>
__global__ void row_moments(const scalar_t *__restrict__ X, float *mean, float *rstd, int N, float eps) {
  using T_ACC = detail::opmath_t<scalar_t>;
  using Data = WelfordData<T_ACC>;
  __shared__ typename std::aligned_storage<sizeof(Data), alignof(Data)>::type val_shared[32];
  Data *val_shared_ptr = reinterpret_cast<Data *>(val_shared);
  WelfordOps<T_ACC> ops;
  Data val = {0, 0, 0};
  for (int j = threadIdx.x; j < N; j += blockDim.x) {
    val = ops.reduce(val, static_cast<T_ACC>(X[blockIdx.x * N + j]));
  }
  for (int offset = 16; offset > 0; offset >>= 1) val = ops.combine(val, ops.warp_shfl_down(val, offset));
  const int lid = threadIdx.x % warpSize, wid = threadIdx.x / warpSize;
  if (lid == 0) val_shared_ptr[wid] = val;
  __syncthreads();
  val = (threadIdx.x < blockDim.x / warpSize) ? val_shared_ptr[lid] : Data{0, 0, 0};
  if (wid == 0) {
    for (int offset = 16; offset > 0; offset >>= 1) val = ops.combine(val, ops.warp_shfl_down(val, offset));
  }
  if (threadIdx.x == 0) {
    mean[blockIdx.x] = val.mean;
    rstd[blockIdx.x] = rsqrt(val.m2 / val.n + eps);
  }
}

// Bilinear interpolation with references as results, and a gradient by atomics.
template <typename T>
__device__ bool bilinear_weights(int height, int width, T y, T x, T &w1, T &w2, T &w3, T &w4, int &x_low, int &x_high,
                                 int &y_low, int &y_high) {
  if (y < -1.0 || y > height || x < -1.0 || x > width) {
    w1 = w2 = w3 = w4 = 0.;
    x_low = x_high = y_low = y_high = -1;
    return false;
  }
  if (y <= 0) y = 0;
  if (x <= 0) x = 0;
  y_low = (int)y;
  x_low = (int)x;
  if (y_low >= height - 1) {
    y_high = y_low = height - 1;
    y = (T)y_low;
  } else {
    y_high = y_low + 1;
  }
  if (x_low >= width - 1) {
    x_high = x_low = width - 1;
    x = (T)x_low;
  } else {
    x_high = x_low + 1;
  }
  T ly = y - y_low, lx = x - x_low, hy = 1. - ly, hx = 1. - lx;
  w1 = hy * hx, w2 = hy * lx, w3 = ly * hx, w4 = ly * lx;
  return true;
}
template <typename T>
__global__ void sample_backward(const int nthreads, const T *grad, const T *points, T *grad_input, int height,
                                int width) {
  CUDA_KERNEL_LOOP(index, nthreads) {
    T w1, w2, w3, w4;
    int x_low, x_high, y_low, y_high;
    if (bilinear_weights(height, width, points[2 * index], points[2 * index + 1], w1, w2, w3, w4, x_low, x_high, y_low,
                         y_high)) {
      atomicAdd(grad_input + y_low * width + x_low, w1 * grad[index]);
      atomicAdd(grad_input + y_low * width + x_high, w2 * grad[index]);
      atomicAdd(grad_input + y_high * width + x_low, w3 * grad[index]);
      atomicAdd(grad_input + y_high * width + x_high, w4 * grad[index]);
    }
  }
}

// The greatest value and where it is, with the limits of the standard library.
template <typename scalar_t, int BLOCK>
__global__ void argmax(const scalar_t *x, long long *index, int n) {
  __shared__ scalar_t values[BLOCK];
  __shared__ int places[BLOCK];
  scalar_t best = -std::numeric_limits<scalar_t>::infinity();
  int place = -1;
  for (int i = threadIdx.x; i < n; i += BLOCK)
    if (x[blockIdx.x * n + i] > best) best = x[blockIdx.x * n + i], place = i;
  values[threadIdx.x] = best, places[threadIdx.x] = place;
  __syncthreads();
  for (int s = BLOCK / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s && (values[threadIdx.x + s] > values[threadIdx.x] ||
                            (values[threadIdx.x + s] == values[threadIdx.x] &&
                             unsigned(places[threadIdx.x + s]) < unsigned(places[threadIdx.x])))) {
      values[threadIdx.x] = values[threadIdx.x + s];
      places[threadIdx.x] = places[threadIdx.x + s];
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) index[blockIdx.x] = places[0];
}
}  // namespace ext
