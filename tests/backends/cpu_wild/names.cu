// Style: code that has its own names for everything, and meets those of others.
#define T float
#define N 32
#define size 4
#define bits 8
#define threads 16
#define result value_of_mine
#define min(a, b) ((a) < (b) ? (a) : (b))
#define unlikely(x) (x)
#define likely(x) (x)
#undef min

typedef unsigned int uint; typedef unsigned char uchar; typedef unsigned short ushort; typedef unsigned long ulong;
struct worker { int v; }; struct lane { int v; }; struct queue { int v; }; struct warp { int v; }; struct runtime { int v; };
struct fiber { int v; }; enum category { podium_one = 1 }; struct barrier { int v; }; struct block { int v; }; struct thread_block { int v; };
class complex { public: T re, im; __device__ complex(T a = 0, T b = 0) : re(a), im(b) {} };
__device__ complex operator*(const complex& a, const complex& b) { return complex(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re); }

inline __device__ float3 operator+(float3 a, float3 b) { return make_float3(a.x + b.x, a.y + b.y, a.z + b.z); }
inline __device__ void operator+=(float4& a, float4 b) { a.x += b.x; a.y += b.y; a.z += b.z; a.w += b.w; }
inline __device__ float4 operator*(float s, float4 a) { return make_float4(s * a.x, s * a.y, s * a.z, s * a.w); }
inline __device__ bool operator==(int2 a, int2 b) { return a.x == b.x && a.y == b.y; }
inline __device__ float lerp(float a, float b, float t) { return a + t * (b - a); }
inline __device__ float clamp(float f, float a, float b) { return fmaxf(a, fminf(f, b)); }
inline __device__ float dot(float3 a, float3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
inline __device__ float length(float3 v) { return sqrtf(dot(v, v)); }
inline __device__ float3 normalize(float3 v) { float i = rsqrtf(dot(v, v)); return make_float3(v.x * i, v.y * i, v.z * i); }
inline __device__ int index(int row, int column) { return row * 8 + column; }
inline __device__ int read(const int* p) { return *p; }
inline __device__ void write(int* p, int v) { *p = v; }
inline __device__ int time(int a) { return a; }
inline __device__ int select(int c, int a, int b) { return c ? a : b; }
inline __device__ int send(int a) { return a + 1; }
inline __device__ int div_up(int a, int b) { return (a + b - 1) / b; }
inline __device__ int swap(int& a, int& b) { int t = a; a = b; b = t; return t; }
inline __device__ int step(int a) { return a; }
inline __device__ int sign(float x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }
inline __device__ int signal(int s) { return s; }
inline __device__ int wait(int s) { return s; }
inline __device__ int map(int s) { return s; }
inline __device__ int link(int s) { return s; }
inline __device__ int meet(int s) { return s; }
inline __device__ int push(int s) { return s; }
inline __device__ int enter(int s) { return s; }
inline __device__ int suspend(int s) { return s; }
inline __device__ int shuffle(int s) { return s; }
inline __device__ int stop(int s) { return s; }
inline __device__ int update(int s) { return s; }
inline __device__ int run(int s) { return s; }
__device__ int here, switched, counter, environ_, errno_, stdin_, data, x, i, n, a;
__device__ int pipe = 1, kill = 2, sleep = 3, close = 4, open = 5;

extern "C" __global__ void everything(int* out, int n)
{
    const int t = threadIdx.x;
    worker one = {1}; lane two = {2}; queue three = {3}; warp four = {4}; runtime five = {5}; fiber six = {6}; barrier seven = {7};
    float4 sum = make_float4(0, 0, 0, 0);
    sum += 2.0f * make_float4(1, 2, 3, 4);
    complex c = complex(1, 2) * complex(3, 4);
    float3 v = make_float3(3, 4, 0) + make_float3(0, 0, 0);
    int p = 1, q = 2;
    swap(p, q);
    int result = one.v + two.v + three.v + four.v + five.v + six.v + seven.v;                    // 28
    result += (int)(sum.x + sum.y + sum.z + sum.w);                                               // 20
    result += (int)c.re + (int)c.im;                                                              // 5
    result += (int)length(v) + sign(-2.0f) + (int)lerp(0, 10, 0.5f) + (int)clamp(9, 0, 3);        // 5 - 1 + 5 + 3
    result += index(1, 2) + time(1) + select(t >= 0, 3, 4) + send(5) + div_up(9, 4) + p - q;      // 10 + 1 + 3 + 6 + 3 + 1
    result += step(1) + signal(1) + wait(1) + map(1) + link(1) + meet(1) + push(1) + enter(1) + suspend(1) + shuffle(1) + stop(1) + update(1) + run(1);  // 13
    result += pipe + kill + sleep + close + open;                                                 // 15
    result += (make_int2(1, 2) == make_int2(1, 2)) + podium_one + size + bits + threads;          // 1 + 1 + 28
    here = switched = 0;
    write(out + t, result + (int)roundf(1000 * normalize(v).x) + N * 0);                          // 600
}
