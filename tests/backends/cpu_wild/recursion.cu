// Style: C++ on the device. Recursion, functions by pointer, virtual functions, objects that are made and deleted.
struct Shape {
    __device__ virtual double area() const = 0;
    __device__ virtual ~Shape() {}
};

struct Disc : Shape {
    double radius;
    __device__ explicit Disc(double r) : radius(r) {}
    __device__ double area() const override { return 3.0 * radius * radius; }
};

struct Box final : Shape {
    double width, height;
    int* deleted;
    __device__ Box(double w, double h, int* d) : width(w), height(h), deleted(d) {}
    __device__ double area() const override { return width * height; }
    __device__ ~Box() override { atomicAdd(deleted, 1); }
};

__device__ int queens(unsigned int all, unsigned int columns, unsigned int left, unsigned int right)
{
    if (columns == all) return 1;
    int count = 0;
    for (unsigned int free = all & ~(columns | left | right); free; free &= free - 1) {
        const unsigned int bit = free & -free;
        count += queens(all, columns | bit, (left | bit) << 1, (right | bit) >> 1);
    }
    return count;
}

__device__ int quicksort_depth(int* a, int low, int high)
{
    if (low >= high) return 0;
    const int pivot = a[(low + high) / 2];
    int i = low, j = high;
    while (i <= j) {
        while (a[i] < pivot) ++i;
        while (a[j] > pivot) --j;
        if (i <= j) {
            const int t = a[i];
            a[i++] = a[j];
            a[j--] = t;
        }
    }
    const int left = quicksort_depth(a, low, j), right = quicksort_depth(a, i, high);
    return 1 + (left > right ? left : right);
}

typedef int (*Operation)(int, int);
__device__ int plus(int a, int b) { return a + b; }
__device__ int times(int a, int b) { return a * b; }
__device__ int apply(Operation operation, int a, int b) { return operation(a, b); }

// The blocks of a thread cover the first moves; each thread counts what follows from its own.
extern "C" __global__ void count_queens(int size, int* count)
{
    const unsigned int all = (1u << size) - 1, first = 1u << threadIdx.x;
    if ((int)threadIdx.x >= size) return;
    atomicAdd(count, queens(all, first, first << 1, first >> 1));
}

extern "C" __global__ void sort_rows(int* rows, int columns, int* depths)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    int copy[64];
    for (int i = 0; i < columns; ++i) copy[i] = rows[row * columns + i];
    depths[row] = quicksort_depth(copy, 0, columns - 1);
    for (int i = 0; i < columns; ++i) rows[row * columns + i] = copy[i];
}

extern "C" __global__ void objects(double* areas, int* deleted, int* folded)
{
    const int i = threadIdx.x;
    Shape* shape = i % 2 ? static_cast<Shape*>(new Disc(i)) : new Box(i, 0.5, deleted);
    areas[i] = shape->area();
    delete shape;

    const Operation table[2] = {plus, times};
    auto fold = [=](int start) {
        int value = start;
        for (int k = 1; k < 5; ++k) value = apply(table[(i + k) % 2], value, k);
        return value;
    };
    folded[i] = fold(i);
}
