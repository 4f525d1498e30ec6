// Style: barriers in places where one does not expect them. Each kernel has one block, and shifts what its threads have
// by some rule that the test knows: out[t] = f(in[(t + 1) % n]) and the like.
#define SYNC() do { __syncthreads(); } while (0)
#define NEXT ((threadIdx.x + 1) % blockDim.x)

__device__ void in_a_function(int* s, int v) { s[threadIdx.x] = v; __syncthreads(); }

extern "C" __global__ void called(const int* in, int* out)
{
    __shared__ int s[128];
    in_a_function(s, in[threadIdx.x]);
    out[threadIdx.x] = s[NEXT];
}

// in a recursive function
__device__ int rotate(int* s, int depth)
{
    if (depth == 0) return s[threadIdx.x];
    const int value = s[NEXT];
    __syncthreads();
    s[threadIdx.x] = value;
    __syncthreads();
    return rotate(s, depth - 1);
}
extern "C" __global__ void recursive(const int* in, int* out)
{
    __shared__ int s[128];
    in_a_function(s, in[threadIdx.x]);
    out[threadIdx.x] = rotate(s, 3);
}

// by pointer, by virtual call, in a constructor and in a destructor
struct Step { __device__ virtual void operator()(int* s, int v) = 0; };
struct Store : Step { __device__ void operator()(int* s, int v) override { s[threadIdx.x] = v; __syncthreads(); } };
typedef void (*Function)(int*, int);
struct Phase {
    int*& s;
    __device__ Phase(int*& s) : s(s) { __syncthreads(); }
    __device__ ~Phase() { __syncthreads(); s[threadIdx.x] += 1000; __syncthreads(); }
};
extern "C" __global__ void indirect(const int* in, int* out)
{
    __shared__ int s[128];
    int* p = s;
    Function function = in_a_function;
    function(s, in[threadIdx.x]);
    int v = s[NEXT];
    __syncthreads();
    Store store;
    Step& step = store;
    step(s, v);
    { Phase phase(p); v = s[NEXT]; }
    out[threadIdx.x] = v + (s[threadIdx.x] >= 1000 ? 0 : -5000);
}

// in conditions and in the heads of loops
extern "C" __global__ void conditions(const int* in, int* out)
{
    __shared__ int s[128];
    int t = threadIdx.x, rounds = 0;
    s[t] = in[t];
    if (__syncthreads_count(in[t] > 50) > 3 && __syncthreads_or(t == 2)) rounds += 100;
    for (int i = 0; __syncthreads_or(i < t % 7); ++i, __syncthreads()) rounds++;
    while (!__syncthreads_and(s[t] % 8 == 0)) { s[t] += s[t] % 8 != 0; }
    do { rounds += 10; } while (__syncthreads_count(rounds < 130) && rounds < 1000);
    const int most = __syncthreads_and(1) ? s[NEXT] : -1;
    out[t] = most + 10000 * rounds;
}

// declarations of all kinds across barriers
template <int N> struct Fixed { int v[N]; __device__ int sum() const { int r = 0; for (int x : v) r += x; return r; } };
extern "C" __global__ void declarations(const int* in, int* out, int n)
{
    const int t = threadIdx.x;
    int a = in[t], *p = &a, b[3] = {a, a + 1, a + 2}, &r = b[1];
    static const int table[4] = {1, 2, 3, 4};
    auto doubled = [&](int x) { return 2 * x + a; };
    decltype(a) c = doubled(a);
    const auto [lo, hi] = make_int2(a % 10, a / 10);
    enum { K = 5 };
    using Triple = Fixed<3>;
    Triple triple = {{a, b[1], K}};
    struct { unsigned low : 1, high : 3; } field = {0, 5};
    __shared__ int s[128];
    s[t] = c;
    __syncthreads();
    *p += s[(t + 1) % n];
    r += lo;
    int unset;
    if (int v = s[t]) unset = v; else unset = -1;
    __syncthreads();
    s[t] = a + r + hi + table[t % 4] + doubled(1) + triple.sum() + b[0] + b[2] + unset + field.low + (field.high - 5);
    __syncthreads();
    {
        int a = s[(t + 2) % n], t = a % 3;  // other variables of the same names
        __syncthreads();
        out[threadIdx.x] = a + t;
    }
    out[t] += a;
}

// loops that are left, gone on with, and gone into in many ways
extern "C" __global__ void loops(const int* in, int* out, int n)
{
    __shared__ int s[128];
    __shared__ bool again;
    bool more_to_do;
    const int t = threadIdx.x;
    int v = in[t], steps = 0;
    for (int i = 0;; ++i) {
        s[t] = v;
        __syncthreads();
        if (i == 5) break;
        if (i % 2) { v = s[(t + 1) % n]; __syncthreads(); continue; }
        v = s[(t + n - 2) % n] + i;
        __syncthreads();
    }
    __syncthreads();
    do {
        if (t == 0) again = false;
        __syncthreads();
        if (v % 5) { ++v; again = true; ++steps; }
        __syncthreads();
        more_to_do = again;
        __syncthreads();
    } while (more_to_do);
    for (int i = 0; i < 2; ++i)
        for (int j = i; j < 3; ++j) {
            s[t] = v;
            __syncthreads();
            for (int k = 0; k < t % 4; ++k) v += s[(t + k) % n] & 1;
            __syncthreads();
        }
    switch (n % 3) {
    case 0: s[t] = v; __syncthreads(); v = s[n - 1 - t]; break;
    case 1: s[t] = v + 1; __syncthreads(); v = s[(t + 3) % n];  // and on
    default: v += 7; __syncthreads();
    }
    int i = 0;
more:
    __syncthreads();
    s[t] = v;
    __syncthreads();
    v = s[(t + 1) % n];
    if (++i < 3) goto more;
    out[t] = v + 100000 * steps;
}

// threads that are there for the first part only, in loops that others go on with
extern "C" __global__ void leavers(const int* in, int* out, int n)
{
    __shared__ int s[128], left;
    const int t = threadIdx.x;
    s[t] = in[t];
    if (t == 0) left = blockDim.x;
    __syncthreads();
    for (int round = 0; round < 200; ++round) {
        if (s[t] <= round) {
            atomicSub(&left, 1);
            out[t] = round * 1000 + s[t];
            return;
        }
        __syncthreads();
        if (t % 2 == 0 && s[t] > 90) s[t] -= 1;
        __syncthreads();
    }
    out[t] = -1;
}

// macros, empty statements, shared memory inside of loops, barriers one behind the other
extern "C" __global__ void odds(const int* in, int* out, int n)
{
    SYNC();
    int v = in[threadIdx.x];;
    __syncthreads(), __syncthreads();
    for (int i = 0; i < 2; ++i) {
        __shared__ int s[128];
        s[threadIdx.x] = v;
        SYNC();
        if (threadIdx.x < 64) { v = s[NEXT]; } else v = s[NEXT] + 1;
        __syncthreads(); __syncthreads();
        { { SYNC(); } }
    }
    if (n > 1) SYNC(); else { __syncthreads(); v = 0; }
    if (n > 1) { int w = v; SYNC(); v = w + 1; } else if (n == 1) { SYNC(); v += 5; }
    (void)__syncthreads_or(v);
    auto sync = [] { __syncthreads(); };
    sync();
    (threadIdx.x == 0 ? (void)(v += 3) : (void)0), __syncthreads();
    out[threadIdx.x] = v;
}

// names that a rewriter might want for itself, and what looks like a barrier and is none
namespace podium_user { struct thread { int x; }; }
extern "C" __global__ void look_alikes(const int* in, int* out, int n)
{
    const char* text = "__syncthreads(); {";
    // __syncthreads();
    /* if (false) { __syncthreads(); */
    int t = threadIdx.x, x = t, y = 2, z = 3, live = 4, mask = 5, all = 6, block = 7, thread = 8, i = 9, worker = 10, w = 11, here = 12;
    podium_user::thread podium = {13};
    char brace = '}', quote = '\'';
    __shared__ int s[128];
    s[t] = in[t] + x + y + z + live + mask + all + block + thread + i + worker + w + here + podium.x + (brace - '}') + (quote - '\'') + (text[0] - '_');
#if 0
    __syncthreads();
#endif
    __syncthreads();
    const int first = s[(t + 1) % n];
    __syncthreads();
    out[t] = first + x + y + z + live + mask + all + block + thread + i + worker + w + here + podium.x;
}

// three axes, and a template over its block
template <int X, int Y, int Z>
__device__ void axes_of(const int* in, int* out)
{
    __shared__ int s[Z][Y][X];
    s[threadIdx.z][threadIdx.y][threadIdx.x] = in[(threadIdx.z * Y + threadIdx.y) * X + threadIdx.x];
    __syncthreads();
    const int v = s[(threadIdx.z + 1) % Z][(threadIdx.y + 2) % Y][(threadIdx.x + 3) % X];
    __syncthreads();
    s[threadIdx.z][threadIdx.y][threadIdx.x] = v;
    __syncthreads();
    out[(threadIdx.z * Y + threadIdx.y) * X + threadIdx.x] = s[Z - 1 - threadIdx.z][threadIdx.y][X - 1 - threadIdx.x];
}
extern "C" __global__ void axes(const int* in, int* out) { axes_of<5, 3, 4>(in, out); }

// barriers of a part of the threads: those of whole warps that a condition selects may wait among themselves with
// __syncwarp, and the others go on to the barrier of all
extern "C" __global__ void halves(const int* in, int* out, int n)
{
    __shared__ int s[128];
    const int t = threadIdx.x, lane = t & 31;
    s[t] = in[t];
    __syncwarp();
    int v = 0;
    if (t / 32 % 2 == 0) {
        for (int k = 0; k < 3; ++k) {
            const int other = s[(t & ~31) + (lane + 1) % 32];
            __syncwarp();
            s[t] = other;
            __syncwarp();
        }
        v = 1;
    }
    __syncthreads();
    out[t] = s[n - 1 - t] + v;
}
