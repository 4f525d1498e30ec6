// Style: graph code. A breadth-first search by levels over a graph in compressed rows; blocks gather what they find in
// a queue of their own, and move it out with one atomic.
#define QUEUE 192

static __device__ __forceinline__ bool visit(int* distance, int vertex, int level)
{
    return distance[vertex] == -1 && atomicCAS(&distance[vertex], -1, level) == -1;
}

extern "C" __global__ void expand(const int* __restrict__ rows, const int* __restrict__ columns,
                                  const int* __restrict__ frontier, int size, int level, int* distance,
                                  int* __restrict__ next, int* next_size)
{
    __shared__ int queue[QUEUE];
    __shared__ int queued, base;

    if (threadIdx.x == 0) queued = 0;
    __syncthreads();

    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) {
        const int vertex = frontier[i];
        for (int edge = rows[vertex]; edge < rows[vertex + 1]; ++edge) {
            const int neighbour = columns[edge];
            if (!visit(distance, neighbour, level)) continue;
            const int slot = atomicAdd(&queued, 1);
            if (slot < QUEUE)
                queue[slot] = neighbour;
            else
                next[atomicAdd(next_size, 1)] = neighbour;  // overflow goes out at once
        }
    }
    __syncthreads();

    const int held = min(queued, QUEUE);
    if (threadIdx.x == 0) base = atomicAdd(next_size, held);
    __syncthreads();
    for (int slot = threadIdx.x; slot < held; slot += blockDim.x) next[base + slot] = queue[slot];
}
