// Style: primitives over user-defined types. A segmented inclusive scan of affine maps, which do not commute, within a
// block: pairs of flag and map go through shuffles and then through the sums of the warps.
struct Affine {
    int a, b;  // x -> a * x + b
};

template <class T>
struct Flagged {
    T value;
    bool head;
};

struct Compose {
    __device__ Affine operator()(Affine first, Affine second) const { return {first.a * second.a, first.b * second.a + second.b}; }
};

template <class T, class Operation>
struct Segmented {
    Operation operation;
    __device__ Flagged<T> operator()(const Flagged<T>& left, const Flagged<T>& right) const
    {
        return right.head ? right : Flagged<T>{operation(left.value, right.value), left.head};
    }
};

__device__ Flagged<Affine> shuffle_up(Flagged<Affine> x, unsigned int delta)
{
    Flagged<Affine> result;
    result.value.a = __shfl_up_sync(~0u, x.value.a, delta);
    result.value.b = __shfl_up_sync(~0u, x.value.b, delta);
    result.head = __shfl_up_sync(~0u, (int)x.head, delta) != 0;
    return result;
}

template <class T, class Operation>
__device__ T scan_warp(T x, Operation operation, int lane)
{
#pragma unroll
    for (unsigned int delta = 1; delta < warpSize; delta *= 2) {
        T other = shuffle_up(x, delta);
        if (lane >= (int)delta) x = operation(other, x);
    }
    return x;
}

extern "C" __global__ void scan_maps(const Affine* in, const unsigned char* heads, Affine* out, int n)
{
    typedef Flagged<Affine> Item;
    __shared__ Item sums[32];
    Segmented<Affine, Compose> operation = {};
    const int lane = threadIdx.x % warpSize, warp = threadIdx.x / warpSize, warps = blockDim.x / warpSize;

    Item carry = {{1, 0}, false};
    for (int start = 0; start < n; start += blockDim.x) {
        const int i = start + threadIdx.x;
        Item item = i < n ? Item{in[i], heads[i] != 0} : Item{{1, 0}, false};
        item = scan_warp(item, operation, lane);
        if (lane == warpSize - 1) sums[warp] = item;
        __syncthreads();
        if (warp == 0) {
            Item sum = lane < warps ? sums[lane] : Item{{1, 0}, false};
            sums[lane] = scan_warp(sum, operation, lane);
        }
        __syncthreads();
        if (warp > 0) item = operation(sums[warp - 1], item);
        item = operation(carry, item);
        carry = operation(carry, sums[warps - 1]);
        if (i < n) out[i] = item.value;
        __syncthreads();
    }
}
