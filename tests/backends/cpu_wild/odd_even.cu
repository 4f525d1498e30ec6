// Style: threads that leave early. Batcher's odd-even merge sort with as many threads as there are elements: those that
// have nothing to compare any more return while others go on to the barriers; and a sort by transposition that ends as
// soon as a whole round has changed nothing.
extern "C" __global__ void merge_sort(int* data, int n)
{
    extern __shared__ int a[];
    int* mine = data + (size_t)blockIdx.x * n;
    const int t = threadIdx.x;
    if (t >= n) return;  // blocks are larger than the data
    a[t] = mine[t];
    __syncthreads();

    for (int p = 1; p < n; p *= 2)
        for (int k = p; k >= 1; k /= 2) {
            for (int j = k % p; j + k < n; j += 2 * k) {
                const int i = t - j;
                if (i < 0 || i >= k || t + k >= n) continue;
                if (t / (2 * p) == (t + k) / (2 * p) && a[t] > a[t + k]) {
                    const int kept = a[t];
                    a[t] = a[t + k];
                    a[t + k] = kept;
                }
            }
            __syncthreads();
        }

    if (t % 2) {
        mine[t] = a[t];
        return;
    }
    __syncthreads();  // the even ones that are left
    mine[t] = a[t];
}

extern "C" __global__ void transposition_sort(short* data, int n, int* rounds)
{
    __shared__ short a[2048];
    short* mine = data + (size_t)blockIdx.x * n;
    for (int i = threadIdx.x; i < n; i += blockDim.x) a[i] = mine[i];
    __syncthreads();

    int round = 0, quiet = 0;
    do {
        bool changed = false;
        for (int i = 2 * threadIdx.x + (round & 1); i + 1 < n; i += 2 * blockDim.x)
            if (a[i] > a[i + 1]) {
                const short kept = a[i];
                a[i] = a[i + 1], a[i + 1] = kept;
                changed = true;
            }
        ++round;
        quiet = __syncthreads_or(changed) ? 0 : quiet + 1;
    } while (quiet < 2);

    if (threadIdx.x == 0) rounds[blockIdx.x] = round;
    for (int i = threadIdx.x; i < n; i += blockDim.x) mine[i] = a[i];
}
