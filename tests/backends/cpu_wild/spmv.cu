// Style: sparse linear algebra. y = alpha * A * x + beta * y for A in compressed rows, several lanes of a warp for each
// row: as many as the mean row needs, so that warps hold several rows with trip counts of their own.
template <typename Index, typename Value, unsigned int LANES>
__device__ void rows_by_lanes(Index rows, const Index* Ap, const Index* Aj, const Value* Ax, const Value* x, Value* y,
                              Value alpha, Value beta)
{
    static_assert((LANES & (LANES - 1)) == 0 && LANES <= 32, "a power of two within a warp");
    const Index thread = blockDim.x * blockIdx.x + threadIdx.x;
    const unsigned int lane = threadIdx.x & (LANES - 1);
    const Index step = blockDim.x * gridDim.x / LANES;

    for (Index row = thread / LANES; row < rows; row += step) {
        // the lanes of this row only: others of the warp may have no row any more
        const unsigned int group = LANES == 32 ? 0xffffffffu : ((1u << LANES % 32) - 1u) << ((threadIdx.x & 31u) & ~(LANES - 1));
        Value sum = 0;
        for (Index k = Ap[row] + lane; k < Ap[row + 1]; k += LANES) sum += Ax[k] * x[Aj[k]];
#pragma unroll
        for (unsigned int offset = LANES / 2; offset > 0; offset >>= 1) sum += __shfl_down_sync(group, sum, offset, LANES);
        if (lane == 0) y[row] = alpha * sum + (beta == Value(0) ? Value(0) : beta * y[row]);
    }
}

#define SPMV(lanes)                                                                                             \
    extern "C" __global__ void spmv_##lanes(long long rows, const long long* Ap, const long long* Aj,           \
                                            const double* Ax, const double* x, double* y, double alpha, double beta) \
    {                                                                                                           \
        rows_by_lanes<long long, double, lanes>(rows, Ap, Aj, Ax, x, y, alpha, beta);                           \
    }

SPMV(1)
SPMV(4)
SPMV(32)
