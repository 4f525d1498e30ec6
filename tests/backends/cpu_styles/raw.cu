// As users of array libraries write: plain C with a few templates, and whatever helps on the spot.
#include <cuda_fp16.h>

#define EPS 1e-8
#define SQ(x) ((x) * (x))
#define CHECK_BOUNDS(i, n) if ((i) >= (n)) return

struct particle { double x, y, z; float mass; int id; };

extern "C" {

__global__ void my_add(const float* x1, const float* x2, float* y, int n) {
    int tid = blockDim.x * blockIdx.x + threadIdx.x;
    CHECK_BOUNDS(tid, n);
    y[tid] = x1[tid] + x2[tid];
}

__device__ static double atomicMaxDouble(double* address, double val)
{
    unsigned long long int* address_as_ull = (unsigned long long int*)address;
    unsigned long long int old = *address_as_ull, assumed;
    do {
        assumed = old;
        if (__longlong_as_double(assumed) >= val) break;
        old = atomicCAS(address_as_ull, assumed, __double_as_longlong(val));
    } while (assumed != old);
    return __longlong_as_double(old);
}

__global__ void forces(const particle* p, double* f, double* strongest, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double ax = 0, ay = 0, az = 0;
    for (int j = 0; j < n; j++) {
        if (i == j) continue;
        double dx = p[j].x - p[i].x, dy = p[j].y - p[i].y, dz = p[j].z - p[i].z;
        double r = rsqrt(SQ(dx) + SQ(dy) + SQ(dz) + EPS);
        double s = p[j].mass * r * r * r;
        ax += dx * s; ay += dy * s; az += dz * s;
    }
    f[3*i+0] = ax; f[3*i+1] = ay; f[3*i+2] = az;
    atomicMaxDouble(strongest, sqrt(SQ(ax) + SQ(ay) + SQ(az)));
}

/* A small machine: what a switch in a kernel looks like. */
__global__ void interpret(const signed char* program, int length, const int* in, int* out, int n)
{
    const int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < n)
    {
        int stack[8], top = 0, pc = 0;
        stack[0] = in[i];
        for (;;)
        {
            if (pc >= length) goto done;
            switch (program[pc++])
            {
            case 0: stack[top + 1] = stack[top]; ++top; break;
            case 1: --top; stack[top] += stack[top + 1]; break;
            case 2: --top; stack[top] *= stack[top + 1]; break;
            case 3: stack[++top] = program[pc++]; break;
            case 4: if (stack[top] & 1) { pc += program[pc]; }
                    /* fall through */
            case 5: ++pc; break;
            case 6: stack[top] = ~stack[top]; break;
            default: stack[top] = -1; goto done;
            }
        }
done:
        out[i] = stack[top];
    }
}

__global__ void rgb_to_gray(const unsigned char* __restrict__ rgb, unsigned char* __restrict__ gray, bool* dark, int w, int h)
{
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    const uchar3 p = reinterpret_cast<const uchar3*>(rgb)[y * w + x];
    float g = 0.299f * p.x + 0.587f * p.y + 0.114f * p.z;
    gray[y * w + x] = (unsigned char)min(255, (int)rintf(g));
    dark[y * w + x] = g < 40.f;
}

}  // extern "C"

template<typename T>
__global__ void clip_gradient(T* g, const T limit, unsigned long long* clipped, size_t n) {
    __shared__ unsigned int here;
    if (threadIdx.x == 0) here = 0u;
    __syncthreads();
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (size_t)blockDim.x * gridDim.x) {
        if (fabs((double)g[i]) > (double)limit) {
            g[i] = copysign((double)limit, (double)g[i]);
            atomicInc(&here, 0xffffffffu);
        }
    }
    __syncthreads();
    if (!threadIdx.x) atomicAdd(clipped, (unsigned long long)here);
}

template<int N, typename T>
__global__ void polynomial(const T* x, T* y, int n, const T* c) {
    T k[N];
    #pragma unroll
    for (int j = 0; j < N; ++j) k[j] = c[j];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        T v = k[N - 1];
        #pragma unroll
        for (int j = N - 2; j >= 0; --j) v = v * x[i] + k[j];
        y[i] = v;
    }
}

extern "C" __global__ void half_axpy(half a, const half2* x, half2* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    half2 a2 = __half2half2(a);
    if (i < n) y[i] = __hfma2(a2, x[i], y[i]);
}
