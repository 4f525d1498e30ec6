/* Tensor maps: what was asked for is recorded, and the rules that the driver documents are held. */
#include <string.h>

#include "control.h"
#include "state.h"

#define MARK UINT64_C(0x6d6170726f736e65)

struct tensor_map {
    uint32_t im2col, type, rank, interleave, swizzle, promotion, fill, channels, pixels;
    uint64_t address, sizes[5], strides[5];
    uint32_t box[5], element_strides[5];
    int32_t lower[5], upper[5];
};
static struct tensor_map last;
static uint64_t map_count;

static const uint32_t element_bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4, 0, 0, 0};

static bool is_float(uint32_t type) { return type >= 6 && type <= 12; }

static CUresult check(const struct tensor_map *map, uint32_t inner) {
    static const uint32_t swizzle_bytes[] = {0, 32, 64, 128, 128, 128, 128};
    REQUIRE(map->type < sizeof element_bytes / sizeof *element_bytes, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(map->rank >= 1 && map->rank <= 5 && map->interleave <= 2 && map->swizzle <= 6 && map->promotion <= 3 &&
                map->fill <= 1,
            CUDA_ERROR_INVALID_VALUE);
    REQUIRE(!map->interleave || map->rank >= 3, CUDA_ERROR_INVALID_VALUE);
    uint32_t element = element_bytes[map->type];
    uint32_t alignment = map->interleave == 2 || !element ? 32 : 16;
    REQUIRE(map->address % alignment == 0, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(!map->fill || is_float(map->type), CUDA_ERROR_INVALID_VALUE);
    for (uint32_t i = 0; i < map->rank; i++) {
        REQUIRE(map->sizes[i] >= 1 && map->sizes[i] <= UINT64_C(1) << 32, CUDA_ERROR_INVALID_VALUE);
        REQUIRE(map->element_strides[i] >= 1 && map->element_strides[i] <= 8, CUDA_ERROR_INVALID_VALUE);
        if (!map->im2col) REQUIRE(map->box[i] >= 1 && map->box[i] <= 256, CUDA_ERROR_INVALID_VALUE);
        if (i + 1 < map->rank)
            REQUIRE(map->strides[i] % alignment == 0 && map->strides[i] < UINT64_C(1) << 40, CUDA_ERROR_INVALID_VALUE);
    }
    if (element) {
        REQUIRE(inner * element % 16 == 0, CUDA_ERROR_INVALID_VALUE);
        if (map->swizzle && !map->interleave)
            REQUIRE(inner * element <= swizzle_bytes[map->swizzle], CUDA_ERROR_INVALID_VALUE);
        uint64_t moved = element;
        if (map->im2col) moved *= (uint64_t)map->channels * map->pixels;
        for (uint32_t i = 0; i < map->rank && !map->im2col; i++)
            moved *= (map->box[i] + map->element_strides[i] - 1) / map->element_strides[i];
        REQUIRE(moved < 1 << 18, CUDA_ERROR_INVALID_VALUE); /* seen on an H200 */
    }
    if (map->interleave == 2) REQUIRE(map->swizzle == 1, CUDA_ERROR_INVALID_VALUE);
    return CUDA_SUCCESS;
}

static void finish(const struct tensor_map *map, CUtensorMap *out) {
    memset(out, 0, sizeof *out);
    out->opaque[0] = map->address; /* the real layout is not published; a kernel never reads this one */
    out->opaque[1] = MARK;
    out->opaque[2] = ++map_count;
    last = *map;
}

#define TYPE(map)                                                                                              \
    .type = (uint32_t)type, .rank = rank, .address = (uint64_t)(uintptr_t)address, .interleave = (uint32_t)interleave, \
    .swizzle = (uint32_t)swizzle, .promotion = (uint32_t)promotion, .fill = (uint32_t)fill

static CUresult supported(const void *out, const void *sizes, const void *element_strides, cuuint32_t rank,
                          CUtensorMapSwizzle swizzle) {
    struct context *context;
    CHECK(context_current(&context));
    const int *attribute = devices[context->device].attribute;
    REQUIRE(attribute[CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED], CUDA_ERROR_NOT_SUPPORTED);
    REQUIRE(swizzle <= 3 || attribute[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] >= 10, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(out && (uintptr_t)out % 64 == 0 && sizes && element_strides && rank >= 1 && rank <= 5,
            CUDA_ERROR_INVALID_VALUE);
    return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *out, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                const cuuint64_t *sizes, const cuuint64_t *strides, const cuuint32_t *box,
                                const cuuint32_t *element_strides, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                CUtensorMapFloatOOBfill fill) {
    ENTER(cuTensorMapEncodeTiled);
    struct tensor_map map = {.im2col = 0, TYPE(map)};
    CHECK(supported(out, sizes, element_strides, rank, swizzle));
    REQUIRE(box && (strides || rank == 1), CUDA_ERROR_INVALID_VALUE);
    for (cuuint32_t i = 0; i < rank; i++) {
        map.sizes[i] = sizes[i];
        map.box[i] = box[i];
        map.element_strides[i] = element_strides[i];
        if (i + 1 < rank) map.strides[i] = strides[i];
    }
    CHECK(check(&map, map.box[0]));
    finish(&map, out);
    return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap *out, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                 const cuuint64_t *sizes, const cuuint64_t *strides, const int *lower, const int *upper,
                                 cuuint32_t channels, cuuint32_t pixels, const cuuint32_t *element_strides,
                                 CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                 CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
    ENTER(cuTensorMapEncodeIm2col);
    struct tensor_map map = {.im2col = 1, TYPE(map), .channels = channels, .pixels = pixels};
    CHECK(supported(out, sizes, element_strides, rank, swizzle));
    REQUIRE(rank >= 3 && strides && lower && upper && channels && channels <= 256 && pixels && pixels <= 1024,
            CUDA_ERROR_INVALID_VALUE);
    int bits = rank == 3 ? 16 : rank == 4 ? 8 : 5;
    for (cuuint32_t i = 0; i < rank; i++) {
        map.sizes[i] = sizes[i];
        map.element_strides[i] = element_strides[i];
        if (i + 1 < rank) map.strides[i] = strides[i];
        if (i + 2 >= rank) continue;
        map.lower[i] = lower[i];
        map.upper[i] = upper[i];
        REQUIRE(lower[i] >= -(1 << (bits - 1)) && lower[i] < 1 << (bits - 1) && upper[i] >= -(1 << (bits - 1)) &&
                    upper[i] < 1 << (bits - 1),
                CUDA_ERROR_INVALID_VALUE);
    }
    CHECK(check(&map, channels));
    finish(&map, out);
    return CUDA_SUCCESS;
}

CUresult cuTensorMapReplaceAddress(CUtensorMap *out, void *address) {
    ENTER(cuTensorMapReplaceAddress);
    REQUIRE(out && address && (uintptr_t)address % 16 == 0, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(out->opaque[1] == MARK, CUDA_ERROR_INVALID_VALUE);
    out->opaque[0] = (uint64_t)(uintptr_t)address;
    return CUDA_SUCCESS;
}

int podium_recording_tensor_map(void *map) {
    __attribute__((cleanup(entry_leave))) int lock = entry_lock();
    memcpy(map, &last, sizeof last);
    return map_count != 0;
}
