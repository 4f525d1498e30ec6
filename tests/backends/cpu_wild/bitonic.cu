// Style: generic library code. Sorts one tile of key-value pairs in each block, in untyped dynamic shared memory, with
// a comparison object that carries state.
template <typename K>
struct ByKey {
    bool descending;
    __host__ __device__ __forceinline__ bool operator()(const K& a, const K& b) const
    {
        return descending ? b < a : a < b;
    }
};

namespace sorting {

template <typename T>
__device__ __forceinline__ void swap(T& a, T& b)
{
    T kept = a;
    a = b;
    b = kept;
}

template <typename K, typename V>
struct Tile {
    K* keys;
    V* values;

    __device__ explicit Tile(unsigned char* raw, unsigned int capacity)
        : keys(reinterpret_cast<K*>(raw)), values(reinterpret_cast<V*>(raw + capacity * sizeof(K)))
    {
    }

    template <typename Less>
    __device__ void order(unsigned int left, unsigned int right, bool ascending, Less less)
    {
        if (less(keys[right], keys[left]) == ascending) {
            swap(keys[left], keys[right]);
            swap(values[left], values[right]);
        }
    }
};

}  // namespace sorting

// CAPACITY is a power of two; the block has CAPACITY / 2 threads
template <typename K, typename V, unsigned int CAPACITY, typename Less>
__device__ void sort_tile(K* keys, V* values, int n, K padding, Less less)
{
    extern __shared__ __align__(16) unsigned char raw[];
    sorting::Tile<K, V> tile(raw, CAPACITY);

    const int first = blockIdx.x * CAPACITY;
    for (unsigned int i = threadIdx.x; i < CAPACITY; i += blockDim.x) {
        tile.keys[i] = first + i < n ? keys[first + i] : padding;
        tile.values[i] = first + i < n ? values[first + i] : V();
    }

    for (unsigned int size = 2; size <= CAPACITY; size <<= 1)
        for (unsigned int stride = size >> 1; stride > 0; stride >>= 1) {
            __syncthreads();
            const unsigned int left = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
            tile.order(left, left + stride, (left & size) == 0, less);
        }
    __syncthreads();

    for (unsigned int i = threadIdx.x; i < CAPACITY; i += blockDim.x)
        if (first + i < n) {
            keys[first + i] = tile.keys[i];
            values[first + i] = tile.values[i];
        }
}

extern "C" __global__ __launch_bounds__(128) void sort_doubles(double* keys, short* values, int n, bool descending)
{
    const double padding = descending ? -1.0e308 : 1.0e308;
    sort_tile<double, short, 256>(keys, values, n, padding, ByKey<double>{descending});
}
