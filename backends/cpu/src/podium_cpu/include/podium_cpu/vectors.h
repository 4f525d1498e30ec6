// Vector types of one to four members, dim3, and the functions that make them. Their alignment is CUDA's.
#ifndef PODIUM_CPU_VECTORS_H
#define PODIUM_CPU_VECTORS_H

// The alignment of two and of four members, which is never more than 16 bytes. Three have that of one.
#define PODIUM_CPU_ALIGNMENT(bytes) __attribute__((aligned((bytes) < 16 ? (bytes) : 16)))

#define PODIUM_CPU_VECTORS(name, element)                                           \
  struct name##1 {                                                                  \
    element x;                                                                      \
  };                                                                                \
  struct PODIUM_CPU_ALIGNMENT(2 * sizeof(element)) name##2 {                        \
    element x, y;                                                                   \
  };                                                                                \
  struct name##3 {                                                                  \
    element x, y, z;                                                                \
  };                                                                                \
  struct PODIUM_CPU_ALIGNMENT(4 * sizeof(element)) name##4 {                        \
    element x, y, z, w;                                                             \
  };                                                                                \
  static inline constexpr name##1 make_##name##1(element x) { return name##1{x}; }  \
  static inline constexpr name##2 make_##name##2(element x, element y) {            \
    return name##2{x, y};                                                           \
  }                                                                                 \
  static inline constexpr name##3 make_##name##3(element x, element y, element z) { \
    return name##3{x, y, z};                                                        \
  }                                                                                 \
  static inline constexpr name##4 make_##name##4(element x, element y, element z,   \
                                                 element w) {                       \
    return name##4{x, y, z, w};                                                     \
  }

PODIUM_CPU_VECTORS(char, signed char)
PODIUM_CPU_VECTORS(uchar, unsigned char)
PODIUM_CPU_VECTORS(short, short)
PODIUM_CPU_VECTORS(ushort, unsigned short)
PODIUM_CPU_VECTORS(int, int)
PODIUM_CPU_VECTORS(uint, unsigned int)
PODIUM_CPU_VECTORS(long, long)
PODIUM_CPU_VECTORS(ulong, unsigned long)
PODIUM_CPU_VECTORS(longlong, long long)
PODIUM_CPU_VECTORS(ulonglong, unsigned long long)
PODIUM_CPU_VECTORS(float, float)
PODIUM_CPU_VECTORS(double, double)

#undef PODIUM_CPU_VECTORS
#undef PODIUM_CPU_ALIGNMENT

struct dim3 {
  unsigned int x, y, z;
  constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return uint3{x, y, z}; }
};

#endif
