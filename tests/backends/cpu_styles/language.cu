// C++ as kernels use it: classes with virtual functions, memory from the heap, recursion, pointers to functions, packs,
// closures, constants of the compiler, and text.
#include <cstdint>
#include <cstring>
#include <array>
#include <new>
#include <tuple>
#include <utility>

namespace shapes {
class Shape {
 public:
  __device__ explicit Shape(float size) : size(size) {}
  __device__ virtual ~Shape() {}
  __device__ virtual float area() const = 0;
  __device__ virtual const char *name() const { return "shape"; }

 protected:
  float size;
};
class Square final : public Shape {
 public:
  using Shape::Shape;
  __device__ float area() const override { return size * size; }
  __device__ const char *name() const override { return "square"; }
};
struct Circle : Shape {
  __device__ Circle(float r) : Shape(r) {}
  __device__ float area() const override { return 3.0f * size * size; }
};
}  // namespace shapes

__global__ void polymorphism(float *out, int n) {
  using namespace shapes;
  if (threadIdx.x >= n) return;
  Shape *shape = threadIdx.x % 2 ? static_cast<Shape *>(new Circle(threadIdx.x)) : new Square(threadIdx.x);
  alignas(Square) unsigned char place[sizeof(Square)];
  Shape *other = new (place) Square(2);
  out[threadIdx.x] = shape->area() + other->area() + 1000 * (shape->name()[1] == 'q');
  other->~Shape();
  delete shape;
}

__global__ void heap(int *out, int n) {
  int *mine = (int *)malloc(sizeof(int) * n);
  int *more = new int[n]();
  for (int i = 0; i < n; ++i) mine[i] = i * (threadIdx.x + 1);
  memcpy(more, mine, n * sizeof(int));
  memset(mine, 0, n * sizeof(int));
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += more[i] + mine[i];
  out[threadIdx.x] = sum;
  free(mine);
  delete[] more;
}

__device__ int ackermann(int m, int n) {
  if (m == 0) return n + 1;
  return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
template <class T>
__device__ void quicksort(T *first, T *last) {
  if (last - first < 2) return;
  T pivot = first[(last - first) / 2], *i = first, *j = last - 1;
  while (i <= j) {
    while (*i < pivot) ++i;
    while (pivot < *j) --j;
    if (i <= j) {
      T t = *i;
      *i++ = *j;
      *j-- = t;
    }
  }
  quicksort(first, j + 1);
  quicksort(i, last);
}
extern "C" __global__ void recursion(int *data, int n, int *value) {
  quicksort(data + n * threadIdx.x, data + n * (threadIdx.x + 1));
  value[threadIdx.x] = ackermann(2, threadIdx.x);
}

typedef float (*unary)(float);
__device__ float twice(float x) { return 2 * x; }
__device__ float negated(float x) { return -x; }
__device__ unary table[] = {twice, negated, [](float x) { return x + 10; }, sqrtf};
template <float f(float)>
__device__ float applied(float x) { return f(x); }
struct Counter {
  int value;
  __device__ int add(int x) { return value += x; }
};
__global__ void functions(float *out) {
  unary f = table[threadIdx.x & 3];
  int (Counter::*method)(int) = &Counter::add;
  Counter counter{5};
  out[threadIdx.x] = f(threadIdx.x) + applied<twice>(100) + (counter.*method)(1);
}

template <class... T>
__device__ constexpr auto sum(T... values) { return (values + ... + 0); }
template <class First, class... Rest>
__device__ int bytes(First, Rest... rest) {
  if constexpr (sizeof...(rest) > 0)
    return sizeof(First) + bytes(rest...);
  else
    return sizeof(First);
}
template <int... i>
struct Digits {
  static constexpr int values[] = {i...};
  static constexpr int count = sizeof...(i);
};
__host__ __device__ constexpr int power(int base, unsigned exponent) {
  int result = 1;
  while (exponent--) result *= base;
  return result;
}
enum class Mode : uint8_t { add = 1, multiply };
template <Mode mode>
struct Operation;
template <>
struct Operation<Mode::add> { template <class T> __device__ T operator()(T a, T b) const { return a + b; } };
template <>
struct Operation<Mode::multiply> { template <class T> __device__ T operator()(T a, T b) const { return a * b; } };
template <class Derived>
struct Base { __device__ int call() { return static_cast<Derived *>(this)->implementation() + 1; } };
struct Derived : Base<Derived> { __device__ int implementation() { return 41; } };
constexpr __device__ int operator""_k(unsigned long long n) { return int(n) * 1000; }
union Word { float f; uint32_t u; struct { uint32_t fraction : 23, exponent : 8, sign : 1; } bits; };

extern "C" __global__ void templates(int *out) {
  constexpr int cubes[] = {power(1, 3), power(2, 3), power(3, 3)};
  static_assert(cubes[2] == 27);
  out[0] = sum(1, 2, 3) + bytes('a', 1.0, short(2));
  out[1] = Digits<3, 1, 4>::values[2] * Digits<3, 1, 4>::count;
  out[2] = Operation<Mode::multiply>()(6, 7) + Operation<Mode::add>{}(1, 1) + Derived().call();
  auto [quotient, remainder] = std::make_pair(17 / 5, 17 % 5);
  std::array<int, 4> values{4, 3, 2, 1};
  int total = 0;
  for (auto &&value : values) total = total * 10 + value;
  out[3] = quotient * 10 + remainder + total;
  auto counter = [n = 0]() mutable { return ++n; };
  counter();
  auto add = [&](auto x, auto y) -> decltype(x + y) { return x + y + total; };
  out[4] = counter() + add(1, 2.5f);
  Word word{};
  word.f = -6.5f;
  out[5] = word.bits.sign * 1000 + word.bits.exponent;
  if (auto t = std::make_tuple(1, 2.0, 'c'); std::get<0>(t) == 1) out[6] = 5_k + std::get<2>(t);
  static const int primes[] = {2, 3, 5, 7};
  out[7] = primes[threadIdx.x % 4] + (0b101 | 0x1'0);
}

extern "C" __global__ void text(int n, double x) {
  if (threadIdx.x != 1) return;
  const char *word = "word";
  printf("%d|%5d|%-5d|%05d|%+d|%i\n", n, n, n, n, n, -n);
  printf("%u|%x|%X|%#x|%o|%c|%%|%s|%.2s|%8s\n", 42u, 255, 255, 255, 8, 'z', word, word, word);
  printf("%f|%.3f|%10.2f|%e|%g|%lf\n", x, x, x, x, x, x);
  printf("%lld|%llu|%ld|%hd|%zu|%*d|%d\n", -5000000000ll, 10000000000ull, 7l, short(3), sizeof(int), 6, n, printf(""));
}
