// Style: from before there was an atomicAdd for doubles. Products are summed up by compare-and-swap of their bits; the
// same loop serves for other operations, and for values of 16 bits within words of 32.
template <typename Function>
__device__ __forceinline__ double atomic_update(double* address, Function function)
{
    unsigned long long int* bits = (unsigned long long int*)address;
    unsigned long long int old = *bits, assumed;
    do {
        assumed = old;
        old = atomicCAS(bits, assumed, __double_as_longlong(function(__longlong_as_double(assumed))));
    } while (assumed != old);
    return __longlong_as_double(old);
}

__device__ static float atomic_max(float* address, float value)
{
    int* address_as_i = (int*)address;
    int old = *address_as_i, assumed;
    do {
        assumed = old;
        old = ::atomicCAS(address_as_i, assumed, __float_as_int(::fmaxf(value, __int_as_float(assumed))));
    } while (assumed != old);
    return __int_as_float(old);
}

__device__ void atomic_add_short(unsigned short* address, unsigned short value)
{
    unsigned int* word = reinterpret_cast<unsigned int*>(reinterpret_cast<size_t>(address) & ~static_cast<size_t>(3));
    const bool high = reinterpret_cast<size_t>(address) & 2;
    unsigned int old = *word, assumed;
    do {
        assumed = old;
        const unsigned short sum = (high ? assumed >> 16 : assumed & 0xffff) + value;
        const unsigned int replaced = high ? (assumed & 0x0000ffffu) | (unsigned int)sum << 16 : (assumed & 0xffff0000u) | sum;
        old = atomicCAS(word, assumed, replaced);
    } while (assumed != old);
}

extern "C" __global__ void dot(const double* x, const double* y, int n, double* sum, double* product, float* largest,
                               unsigned short* residues)
{
    double mine = 0;
    float most = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
        mine += x[i] * y[i];
        most = max(most, (float)fabs(x[i]));
        atomic_add_short(&residues[i % 7], 1);
    }
    atomic_update(sum, [mine](double old) { return old + mine; });
    if (threadIdx.x == 0) atomic_update(product, [=](double old) -> double { return old * 1.5; });
    atomic_max(largest, most);
}
