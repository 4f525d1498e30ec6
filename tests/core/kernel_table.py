"""Kernels as people write them, each with the name asked for and the signature that it has."""

from __future__ import annotations

__all__ = ["KERNELS"]

# (what it shows, source, name, signature)
KERNELS: list[tuple[str, str, str | None, str]] = [
    (
        "saxpy",
        "__global__ void saxpy(int n, float a, const float* __restrict__ x, float* __restrict__ y) { }",
        None,
        "n: i32, a: fp32, x: *kfp32, y: *fp32",
    ),
    (
        "extern C with launch bounds after void",
        'extern "C" __global__ void __launch_bounds__(256, 2) k(double *p, long long n) { }',
        None,
        "p: *fp64, n: i64",
    ),
    (
        "extern C block with attributes in front",
        'extern "C" {\n__attribute__((amdgpu_flat_work_group_size(1, 256))) __global__ void k(void) { }\n}',
        None,
        "",
    ),
    (
        "void before __global__",
        "static void __global__ k(unsigned char *image, size_t pitch);",
        None,
        "image: *u8, pitch: u64",
    ),
    (
        "no space and newlines",
        "__global__\nvoid\nk(\n  float*x,\n  int\n  n\n)\n{\n}\n",
        None,
        "x: *fp32, n: i32",
    ),
    (
        "storage classes and C++ attributes",
        "[[nodiscard]] __global__ static inline void k([[maybe_unused]] const int n, int m "
        "[[maybe_unused]]) noexcept { }",
        None,
        "n: i32, m: i32",
    ),
    (
        "every launch attribute there is",
        "__global__ void __launch_bounds__(N * 32) __cluster_dims__(2, 1, 1) __maxnreg__(64) k(float* x) { }",
        None,
        "x: *fp32",
    ),
    (
        "an attribute macro of a header",
        "API_EXPORT(3) __global__ DEVICE_ATTR(x, y) void k(float* x) { }",
        None,
        "x: *fp32",
    ),
    (
        "names of all integers",
        "__global__ void k(char a, signed char b, unsigned char c, short d, unsigned short int "
        "e, unsigned f, signed g, long h, long unsigned int i, long long j, int unsigned long "
        "long l, bool m, wchar_t n) { }",
        None,
        "a: i8, b: i8, c: u8, d: i16, e: u16, f: u32, g: i32, h: i64, i: u64, j: i64, l: u64, m: i1, n: i32",
    ),
    (
        "fixed-width integers",
        "#include <cstdint>\n"
        "__global__ void k(int8_t a, std::uint16_t b, uint32_t c, cuda::std::int64_t d, "
        "uintptr_t e, ptrdiff_t f, std::size_t g, intptr_t h) { }",
        None,
        "a: i8, b: u16, c: u32, d: i64, e: u64, f: i64, g: u64, h: i64",
    ),
    (
        "half types",
        "__global__ void k(half a, __half b, const __half* c, __nv_bfloat16 d, nv_bfloat16* e, "
        "hip_bfloat16 f, half2 g, __nv_bfloat162 h, _Float16 i) { }",
        None,
        "a: fp16, b: fp16, c: *kfp16, d: bf16, e: *bf16, f: bf16, g: {fp16,fp16}@4, h: {bf16,bf16}@4, i: fp16",
    ),
    (
        "eight-bit floats behind pointers",
        "__global__ void k(const __nv_fp8_e4m3* a, __nv_fp8_e5m2* b, __hip_fp8_e4m3_fnuz* c) { }",
        None,
        "a: *kfp8e4nv, b: *fp8e5, c: *fp8e4b8",
    ),
    (
        "vector types by value",
        "__global__ void k(float2 a, float3 b, float4 c, int2 d, uint3 e, uchar4 f, double2 g, "
        "double4 h, short3 i, dim3 j, longlong2 l, char1 m) { }",
        None,
        "a: {fp32,fp32}@8, b: {fp32,fp32,fp32}, c: {fp32,fp32,fp32,fp32}@16, d: {i32,i32}@8, "
        "e: {u32,u32,u32}, f: {u8,u8,u8,u8}@4, g: {fp64,fp64}@16, h: {fp64,fp64,fp64,fp64}@16, "
        "i: {i16,i16,i16}, j: {u32,u32,u32}, l: {i64,i64}@16, m: {i8}",
    ),
    (
        "pointers to what is no number",
        "struct Node; struct P { int x; };\n"
        "__global__ void k(const Node* a, struct Node* b, P* c, float4* d, const void* e, "
        "Unknown* f, curandState* g, std::vector<int>* h) { }",
        None,
        "a: *kvoid, b: *void, c: *void, d: *void, e: *kvoid, f: *void, g: *void, h: *void",
    ),
    (
        "const in every place",
        "__global__ void k(float const* a, float* const b, const float* const c, const float* "
        "const* d, float* const* e, const float** f, volatile int* g) { }",
        None,
        "a: *kfp32, b: *fp32, c: *kfp32, d: *k*kfp32, e: *k*fp32, f: **kfp32, g: *i32",
    ),
    (
        "arrays as parameters",
        "__global__ void k(float a[], float b[16], const float c[4][4], float* d[], float "
        "(*e)[16], int (*const f)[2][3]) { }",
        None,
        "a: *fp32, b: *fp32, c: *kfp32, d: **fp32, e: *fp32, f: *i32",
    ),
    (
        "complex numbers",
        "__global__ void k(cuComplex* a, const cuDoubleComplex* b, thrust::complex<float>* c, "
        "cuda::std::complex<double>* d, cuFloatComplex e) { }",
        None,
        "a: *c64, b: *kc128, c: *c64, d: *c128, e: {fp32,fp32}@8",
    ),
    (
        "unnamed parameters",
        "__global__ void k(float*, int, const double*, unsigned = 3);",
        None,
        "arg0: *fp32, arg1: i32, arg2: *kfp64, arg3: u32",
    ),
    (
        "default values",
        "__global__ void k(float* x, int n = f(1, 2), float3 c = {1, 2, 3}, bool b = (1 < 2), P* p = new P{1, 2}) { }",
        None,
        "x: *fp32, n: i32, c: {fp32,fp32,fp32}, b: i1, p: *void",
    ),
    (
        "namespaces of all sorts",
        "namespace a::b { namespace { inline namespace v2 { __global__ void k(float* x) { } } } }",
        "a::b::k",
        "x: *fp32",
    ),
    (
        "typedef chains through namespaces",
        "typedef float real; namespace n { using scalar = real; typedef const scalar* in; "
        "namespace m { __global__ void k(in x, scalar* y, ::n::scalar a, real b) { } } }",
        "k",
        "x: *kfp32, y: *fp32, a: fp32, b: fp32",
    ),
    (
        "an alias shadows a built-in name",
        "namespace n { using half = double; __global__ void k(half a, half* b) { } }",
        "n::k",
        "a: fp64, b: *fp64",
    ),
    (
        "using declarations and directives",
        "namespace a { using T = double; struct S { int x; }; } namespace b = a; using "
        "namespace a; namespace c { using a::S; __global__ void k(T x, S s, b::T y) { } }",
        "k",
        "x: fp64, s: {i32}, y: fp64",
    ),
    (
        "enums by value",
        "enum Mode { A, B, C }; enum class Small : unsigned char { X }; enum Flag { HIGH = "
        "0xFFFFFFFF }; enum class E { Z };\n"
        "__global__ void k(Mode a, Small b, Flag c, enum Mode d, E e, Mode* f, const Small* g) { }",
        None,
        "a: i32, b: u8, c: u32, d: i32, e: i32, f: *i32, g: *ku8",
    ),
    (
        "a struct by value",
        "struct Params { int width, height; float *data; const char* name; float m[3][4]; bool on; };\n"
        "__global__ void k(Params p, const __grid_constant__ Params q, struct Params r) { }",
        None,
        "p: {i32,i32,*fp32,*ki8,[3x[4xfp32]],i1}, q: {i32,i32,*fp32,*ki8,[3x[4xfp32]],i1}, r: "
        "{i32,i32,*fp32,*ki8,[3x[4xfp32]],i1}",
    ),
    (
        "typedef struct with an alignment",
        "typedef struct __align__(16) { float x, y; } A, *B;\nstruct __builtin_align__(8) C { int i; };\n"
        "struct alignas(32) D { char c; };\nstruct E { int i; } __attribute__((aligned(16)));\n"
        "__global__ void k(A a, B b, C c, D d, E e) { }",
        None,
        "a: {fp32,fp32}@16, b: *void, c: {i32}@8, d: {i8}@32, e: {i32}@16",
    ),
    (
        "methods, static members and nested types",
        "struct View { using T = float; enum { N = 3 }; static constexpr int M = N + 1; static int count;\n"
        " struct Shape { int size[N]; }; T* data; Shape shape; T extra[M];\n"
        " __host__ __device__ View(T* d) : data(d), shape{} { if (d) { } }\n"
        " __device__ T& operator()(int i) const { return data[i]; }\n"
        " bool operator==(const View& o) const = default; ~View(); template <class U> U as() "
        "const { return U{}; }\n friend struct Other; private: int last = 0; };\n"
        "__global__ void k(View v) { }",
        None,
        "v: {*fp32,{[3xi32]},[4xfp32],i32}",
    ),
    (
        "structs in structs, also without names",
        "struct P { struct { float x, y; } pos; struct { int a; char b; }; float4 v; dim3 d; "
        "struct Q { int z; } q[2]; };\n__global__ void k(P p) { }",
        None,
        "p: {{fp32,fp32},{i32,i8},{fp32,fp32,fp32,fp32}@16,{u32,u32,u32},[2x{i32}]}",
    ),
    (
        "an empty functor",
        "struct Add { __device__ float operator()(float a, float b) const { return a + b; } };\n"
        "template <typename Op> __global__ void k(float* x, Op op) { }",
        "k<Add>",
        "x: *fp32, op: opaque[1,1]",
    ),
    (
        "a member with an alignment of its own",
        "struct S { int a; alignas(16) float b; float c; }; struct T { alignas(8) int a; int b; };\n"
        "__global__ void k(S s, T t) { }",
        None,
        "s: opaque[32,16], t: {i32,i32}@8",
    ),
    (
        "array sizes",
        "#define N 4\n#define M (N * 2)\n"
        "constexpr int K = 1 << 3; static const unsigned L = K / 2 + sizeof(float4) % 10;\n"
        "enum { FIRST = 5, SECOND }; namespace n { constexpr long long W{3}; }\n"
        "struct S { int a[N]; int b[M][0x2]; int c[K - 1]; int d[L]; int e[SECOND]; int "
        "f[n::W]; int g[(2 > 1) ? 7 : 8]; int h[static_cast<int>(sizeof(int) * 2)]; int i[1'0]; int j[9 + -7 / 2]; };\n"
        "__global__ void k(S s) { }",
        None,
        "s: {[4xi32],[8x[2xi32]],[7xi32],[10xi32],[6xi32],[3xi32],[7xi32],[8xi32],[10xi32],[6xi32]}",
    ),
    (
        "a macro for the type",
        "#ifndef REAL\n#define REAL float\n#endif\n#define VEC REAL*\n#define RESTRICT __restrict__\n"
        '#define KERNEL extern "C" __global__ void\n'
        "KERNEL k(REAL a, const VEC RESTRICT x, REAL (*y)[2]) { }",
        None,
        "a: fp32, x: *kfp32, y: *fp32",
    ),
    (
        "branches that are decided",
        "#if 0\n__global__ void k(int* x) { }\n#else\n__global__ void k(float* x) { }\n#endif\n"
        "#define WIDE 1\n#if WIDE\ntypedef double real;\n#else\ntypedef float real;\n#endif\n#ifdef WIDE\n"
        "#define X real a\n#else\n#define X int a\n#endif\n__global__ void j(X) { }",
        "j",
        "a: fp64",
    ),
    (
        "branches that agree",
        "#ifdef __CUDA_ARCH__\n__global__ void k(float* x, int n) {\n#else\n"
        "__global__ void k(float* y, int m) {\n#endif\n}",
        None,
        "x: *fp32, n: i32",
    ),
    (
        "conditions in the body and before the kernel",
        "#if __CUDA_ARCH__ >= 700\n__launch_bounds__(256)\n#endif\n__global__ void k(float* x) {\n"
        "#if FAST\n if (x) {\n#else\n if (!x) {\n#endif\n }\n}\n__global__ void j(int n) { }",
        "j",
        "n: i32",
    ),
    (
        "branches in bodies, and what comes behind them",
        "namespace n {\nvoid f() {\n#if A\n  if (a) {\n#elif B\n  if (b) {\n#else\n  {\n#endif\n  }\n}\n"
        "void g() {\n#if A\n  }\n#else\n  return; }\n#endif\n"
        "struct S { int a; };\n}\n__global__ void k(n::S s) { }",
        None,
        "s: {i32}",
    ),
    (
        "declarations in an extern C block and an attributed namespace",
        'extern "C" {\nstruct S { int a; };\n}\nnamespace [[deprecated("old")]] n __attribute__((x(1))) {\n'
        "typedef float T;\n__global__ void k(S s, T t) { }\n}",
        "n::k",
        "s: {i32}, t: fp32",
    ),
    (
        "a default of a macro is a definition from there on",
        "#ifndef REAL\n#define REAL double\n#endif\n#ifdef REAL\ntypedef REAL T;\n#else\ntypedef int T;\n#endif\n"
        "#if UNKNOWN\ntypedef int U;\n#elif 1\ntypedef int U;\n#else\ntypedef float U;\n#endif\n"
        "__global__ void k(T a, U b) { }",
        None,
        "a: fp64, b: i32",
    ),
    (
        "what stands behind the parameter list",
        "__global__ void k(int n) noexcept(true) __attribute__((noinline(1))) { }\n"
        "template <class T> __global__ void j(T n) requires (sizeof(T) > 2) { }",
        "k",
        "n: i32",
    ),
    (
        "const arrays behind a typedef",
        "typedef float V[3];\n__global__ void k(const V a, V b, const V* c, V* const d) { }",
        None,
        "a: *kfp32, b: *fp32, c: *kfp32, d: *fp32",
    ),
    (
        "a template with types and values",
        "template <typename T, int N, bool B> __global__ void reduce(const T* in, T* out, T init, Block<T, N>* b) { }",
        "reduce<double, 256, true>",
        "in: *kfp64, out: *fp64, init: fp64, b: *void",
    ),
    (
        "template defaults, also from a declaration before",
        "template <typename T, typename Acc = T, int N = 4> __global__ void k(T* x, Acc a);\n"
        "template <typename T, typename Acc, int N> __global__ void k(T* x, Acc a) { }",
        "k<half>",
        "x: *fp16, a: fp16",
    ),
    (
        "type arguments of every form",
        "namespace n { struct S { int x; }; } template <class A, class B, class C, class D> "
        "__global__ void k(A a, B b, C c, const D* d) { }",
        "k<unsigned long long, const float*, n::S, float*>",
        "a: u64, b: *kfp32, c: {i32}, d: *k*fp32",
    ),
    (
        "template structs and their members",
        "template <typename T, int N = 2> struct Array { T data[N]; }; template <class T> "
        "struct Traits { using vec = Array<T, 4>; static constexpr int size = 3; }; template "
        "<class T> using Pair = Array<T>;\n"
        "template <typename T> __global__ void k(Array<T, 3> a, typename Traits<T>::vec b, "
        "Pair<T> c, Array<int, Traits<T>::size> d, Array<Array<T>, N> e);\nconstexpr int N = 1 + 1;",
        "k<float>",
        "a: {[3xfp32]}, b: {[4xfp32]}, c: {[2xfp32]}, d: {[3xi32]}, e: {[2x{[2xfp32]}]}",
    ),
    (
        "a struct with itself behind pointers",
        "template <class T> struct Tree { Tree<T> *left, *right, *up; T value; }; struct List "
        "{ List* next; List* last; };\n__global__ void k(Tree<float> t, List l) { }",
        None,
        "t: {*void,*void,*void,fp32}, l: {*void,*void}",
    ),
    (
        "constrained and unused template parameters",
        "template <std::floating_point T, typename = std::enable_if_t<true>, auto V = 3> "
        "requires (sizeof(T) > 2) __global__ void k(T* x) { }",
        "k<float>",
        "x: *fp32",
    ),
    (
        "specialisations and instantiations beside the template",
        "template <typename T> __global__ void k(T* x, int n) { }\n"
        "template <> __global__ void k<int>(int* x, int n) { }\n"
        "template __global__ void k<double>(double*, int);",
        "k<float>",
        "x: *fp32, n: i32",
    ),
    (
        "a tensor map and texture objects",
        "__global__ void k(const __grid_constant__ CUtensorMap map, cudaTextureObject_t tex, CUtensorMap* maps) { }",
        None,
        "map: opaque[128,64], tex: u64, maps: *void",
    ),
    (
        "arrays of the standard library",
        "__global__ void k(cuda::std::array<int, 3> a, std::array<float4, 2> b) { }",
        None,
        "a: {[3xi32]}, b: {[2x{fp32,fp32,fp32,fp32}@16]}",
    ),
    (
        "comments, strings and raw strings",
        'const char* s = "__global__ void no(int) {"; /* __global__ void no2() { */ // '
        "__global__ void no3() {\n"
        "auto r = R\"x(__global__ void no4() { )\" )x\"; char c = '{'; int big = 1'000'000;\n"
        '__global__ void k(float* /* the, input */ x, // the ( output\n int n) { const char* t = "}"; }',
        None,
        "x: *fp32, n: i32",
    ),
    (
        "line continuations and Windows line ends",
        "#define BODY \\\r\n  { }\r\n__global__ \\\r\nvoid k(float* x,\r\n int n) BODY\r\n",
        None,
        "x: *fp32, n: i32",
    ),
    (
        "an attribute macro that stays unknown before a namespace",
        "LIBRARY_BEGIN(foo)\nnamespace n LIBRARY_ABI {\nLIBRARY_DECLARE(bar)\n__global__ void k(int n) { }\n}",
        "n::k",
        "n: i32",
    ),
    (
        "a trailing return type and a parenthesised name",
        "__global__ auto k(int n) -> void { }\n__global__ void (j)(float x) { }",
        "j",
        "x: fp32",
    ),
    (
        "function-try-block",
        "__global__ void k(int n) try { } catch (...) { }",
        None,
        "n: i32",
    ),
    (
        "broken code elsewhere",
        "int broken = = ;\nstruct { ] )\nvoid f() { if (x) { \n"
        "__global__ void k(float* x, int n) { y = ( ; }\n#endif\n}}}}",
        "k",
        "x: *fp32, n: i32",
    ),
    (
        "a friend declaration",
        "struct S { friend __global__ void k(S s, int n); int x; };\n__global__ void k(S s, int n) { }",
        None,
        "s: {i32}, n: i32",
    ),
]
