// Style: extensions of array libraries. Tensors come as accessors with sizes and strides, by value; loops and types
// come from macros; the same body serves for several element types, with a wider one to accumulate in.
#define CUDA_KERNEL_LOOP(i, n) for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < (n); i += int64_t(blockDim.x) * gridDim.x)
#define C10_RESTRICT __restrict__
#define MIN(a, b) ((a) < (b) ? (a) : (b))

typedef long long int64_t_;
#define int64_t int64_t_

template <typename T, int N>
struct Accessor {
    T* data;
    int64_t sizes[N];
    int64_t strides[N];

    template <typename... I>
    __device__ T& operator()(I... i) const
    {
        static_assert(sizeof...(I) == N, "an index for each axis");
        return data[offset(0, i...)];
    }

private:
    __device__ int64_t offset(int) const { return 0; }
    template <typename... I>
    __device__ int64_t offset(int axis, int64_t first, I... rest) const
    {
        return first * strides[axis] + offset(axis + 1, rest...);
    }
};

template <typename T>
struct acc_type {
    using type = float;
};
template <>
struct acc_type<double> {
    using type = double;
};

template <typename scalar_t>
__device__ __forceinline__ scalar_t area_weight(scalar_t x) { return max(scalar_t(0), scalar_t(1) - abs(x)); }

// Bilinear sampling of `in` [channels][height][width] at `where` [points][2]
template <typename scalar_t>
__device__ void sample_body(Accessor<const scalar_t, 3> in, Accessor<const scalar_t, 2> where, Accessor<scalar_t, 2> out)
{
    using acc_t = typename acc_type<scalar_t>::type;
    const auto channels = in.sizes[0];
    CUDA_KERNEL_LOOP(index, channels * where.sizes[0])
    {
        const int64_t c = index % channels, p = index / channels;
        const acc_t y = where(p, 0), x = where(p, 1);
        acc_t value = 0;
        const int y0 = static_cast<int>(floor(y)), x0 = static_cast<int>(::floor(x));
#pragma unroll
        for (int dy = 0; dy < 2; ++dy)
            for (int dx = 0; dx < 2; ++dx) {
                const int64_t yy = y0 + dy, xx = x0 + dx;
                if (yy < 0 || yy >= in.sizes[1] || xx < 0 || xx >= in.sizes[2]) continue;
                value += area_weight<acc_t>(y - yy) * area_weight<acc_t>(x - xx) * static_cast<acc_t>(in(c, yy, xx));
            }
        out(p, c) = static_cast<scalar_t>(value);
    }
}

extern "C" __global__ void sample_float(Accessor<const float, 3> in, Accessor<const float, 2> where, Accessor<float, 2> out)
{
    sample_body<float>(in, where, out);
}
extern "C" __global__ void sample_double(Accessor<const double, 3> in, Accessor<const double, 2> where, Accessor<double, 2> out)
{
    sample_body<double>(in, where, out);
}
