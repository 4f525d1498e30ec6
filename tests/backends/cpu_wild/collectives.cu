// Style: building blocks as classes, each with a type for its temporary storage; a kernel has them share memory in a
// union, and policies choose between them at compile time.
enum Algorithm { BY_RAKING, BY_WARPS };

template <typename T, int THREADS, Algorithm ALGORITHM>
class BlockReduce;

template <typename T, int THREADS>
class BlockReduce<T, THREADS, BY_RAKING> {
public:
    struct TempStorage {
        T values[THREADS];
        T total;
    };
    __device__ __forceinline__ explicit BlockReduce(TempStorage& storage) : storage_(storage), linear_((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x) {}
    template <typename Operation>
    __device__ __forceinline__ T Reduce(T input, Operation operation)
    {
        storage_.values[linear_] = input;
        __syncthreads();
        if (linear_ == 0) {
            T total = storage_.values[0];
            for (int i = 1; i < THREADS; ++i) total = operation(total, storage_.values[i]);
            storage_.total = total;
        }
        __syncthreads();
        return storage_.total;
    }

private:
    TempStorage& storage_;
    unsigned int linear_;
};

template <typename T, int THREADS>
class BlockReduce<T, THREADS, BY_WARPS> {
    enum { WARPS = (THREADS + 31) / 32, LAST_LANES = THREADS - (WARPS - 1) * 32 };

public:
    union TempStorage {
        T warps[WARPS];
        char pad[1];
    };
    __device__ __forceinline__ explicit BlockReduce(TempStorage& storage) : storage_(storage) {}
    template <typename Operation>
    __device__ T Reduce(T input, Operation operation)
    {
        const unsigned int linear = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
        const int lane = linear & 31, warp = linear >> 5;
        const int lanes = warp == WARPS - 1 ? LAST_LANES : 32;  // the last warp need not be whole
        const unsigned int members = lanes == 32 ? 0xffffffffu : (1u << lanes) - 1;
        for (int offset = 1; offset < lanes; offset <<= 1) {
            T other = __shfl_down_sync(members, input, offset);
            if (lane + offset < lanes) input = operation(input, other);
        }
        if (lane == 0) storage_.warps[warp] = input;
        __syncthreads();
        T total = storage_.warps[0];
#pragma unroll
        for (int w = 1; w < WARPS; ++w) total = operation(total, storage_.warps[w]);
        return total;
    }

private:
    TempStorage& storage_;
};

template <typename T, int ITEMS>
struct Striped {
    T items[ITEMS];
    __device__ T& operator[](int i) { return items[i]; }
    __device__ const T* begin() const { return items; }
    __device__ const T* end() const { return items + ITEMS; }
};

template <typename T, int X, int Y, int Z, int ITEMS, Algorithm ALGORITHM>
struct Agent {
    using Reduce = BlockReduce<T, X * Y * Z, ALGORITHM>;
    using ReduceIndex = BlockReduce<int, X * Y * Z, BY_WARPS>;
    struct _TempStorage {
        union {
            typename Reduce::TempStorage reduce;
            typename ReduceIndex::TempStorage index;
        };
        int tile;
    };

    _TempStorage& storage;
    const T* in;

    __device__ void operator()(int n, T* sums, int* firsts)
    {
        const int linear = (threadIdx.z * Y + threadIdx.y) * X + threadIdx.x;
        if (linear == 0) storage.tile = blockIdx.x;
        __syncthreads();
        const int base = storage.tile * X * Y * Z * ITEMS;
        Striped<T, ITEMS> mine;
        for (int i = 0; i < ITEMS; ++i) {
            const int at = base + i * X * Y * Z + linear;
            mine[i] = at < n ? in[at] : T{};
        }
        T sum{};
        for (T item : static_cast<const Striped<T, ITEMS>&>(mine)) sum += item;
        sum = Reduce(storage.reduce).Reduce(sum, [](T a, T b) { return a + b; });
        __syncthreads();  // the storage is used again
        int first = 0x7fffffff;
        for (int i = ITEMS; i-- > 0;)
            if (mine[i] > T(0)) first = base + i * X * Y * Z + linear;
        first = ReduceIndex(storage.index).Reduce(first, [](int a, int b) { return min(a, b); });
        if (linear == 0) {
            sums[blockIdx.x] = sum;
            firsts[blockIdx.x] = first;
        }
    }
};

template <typename T, Algorithm ALGORITHM>
__global__ void tiles(const T* in, int n, T* sums, int* firsts)
{
    typedef Agent<T, 7, 5, 3, 4, ALGORITHM> Tiles;
    __shared__ typename Tiles::_TempStorage storage;
    Tiles{storage, in}(n, sums, firsts);
}
