/* Images of code: a cubin, PTX text, or a fat binary with several of them, of which one is chosen. */
#include <stdlib.h>
#include <string.h>

#include "state.h"

#define FAT_MAGIC 0xba55ed50u
#define WRAPPER_MAGIC 0x466243b1u
#define FAT_COMPRESSED 0xa000u
enum { FAT_PTX = 1, FAT_ELF = 2 };

/* The parts of a fat binary: a header, then entries, each a header and its bytes. */
struct fat_header { uint32_t magic; uint16_t version, header_size; uint64_t size; };
struct fat_entry {
    uint16_t kind, version;
    uint32_t header_size;
    uint64_t size;
    uint32_t compressed_size, options;
    uint16_t minor, major;
    uint32_t arch, name_offset, name_size;
    uint64_t flags;
};
struct wrapper { uint32_t magic, version; const void *data; };

struct kernel_info *image_add_kernel(struct image *image, const char *name, size_t length) {
    image->kernels = realloc(image->kernels, (image->kernel_count + 1) * sizeof *image->kernels);
    if (!image->kernels) abort();
    struct kernel_info *kernel = &image->kernels[image->kernel_count++];
    memset(kernel, 0, sizeof *kernel);
    memcpy(kernel->name, name, length < MAX_NAME ? length : MAX_NAME - 1);
    kernel->max_threads = 1024;
    return kernel;
}

struct variable_info *image_add_variable(struct image *image, const char *name, size_t length) {
    image->variables = realloc(image->variables, (image->variable_count + 1) * sizeof *image->variables);
    if (!image->variables) abort();
    struct variable_info *variable = &image->variables[image->variable_count++];
    memset(variable, 0, sizeof *variable);
    memcpy(variable->name, name, length < MAX_NAME ? length : MAX_NAME - 1);
    variable->alignment = 256;
    return variable;
}

void kernel_add_parameter(struct kernel_info *kernel, uint32_t ordinal, uint32_t offset, uint32_t size) {
    if (ordinal >= kernel->parameter_capacity) {
        uint32_t capacity = (ordinal + 1) * 2;
        kernel->parameters = realloc(kernel->parameters, capacity * sizeof *kernel->parameters);
        if (!kernel->parameters) abort();
        memset(kernel->parameters + kernel->parameter_capacity, 0,
               (capacity - kernel->parameter_capacity) * sizeof *kernel->parameters);
        kernel->parameter_capacity = capacity;
    }
    kernel->parameters[ordinal] = (struct parameter){offset, size};
    if (ordinal >= kernel->parameter_count) kernel->parameter_count = ordinal + 1;
    if (offset + size > kernel->parameter_bytes) kernel->parameter_bytes = offset + size;
}

void image_release(struct image *image) {
    if (--image->references) return;
    for (uint32_t i = 0; i < image->kernel_count; i++) free(image->kernels[i].parameters);
    free(image->kernels);
    free(image->variables);
    free(image->bytes);
    free(image);
}

struct image *image_none(void) {
    struct image *image = calloc(1, sizeof *image);
    if (!image) abort();
    image->references = 1;
    return image;
}

static CUresult read_one(const void *data, size_t size, bool ptx, struct image **out) {
    struct image *image = calloc(1, sizeof *image);
    if (!image || !(image->bytes = malloc(size + 1))) abort();
    memcpy(image->bytes, data, size);
    image->bytes[size] = 0;
    image->size = size;
    image->references = 1;
    image->ptx = ptx;
    CUresult status = ptx ? ptx_read(image) : elf_read(image);
    if (status) image_release(image);
    else *out = image;
    return status;
}

static size_t elf_size(const uint8_t *data) {
    uint64_t sections;
    uint16_t size, count;
    memcpy(&sections, data + 40, sizeof sections);
    memcpy(&size, data + 58, sizeof size);
    memcpy(&count, data + 60, sizeof count);
    uint64_t end = sections + (uint64_t)size * count;
    uint64_t segments;
    memcpy(&segments, data + 32, sizeof segments);
    memcpy(&size, data + 54, sizeof size);
    memcpy(&count, data + 56, sizeof count);
    if (segments + (uint64_t)size * count > end) end = segments + (uint64_t)size * count;
    return end < UINT64_C(1) << 32 ? (size_t)end : 0;
}

static bool is_elf(const uint8_t *data) { return !memcmp(data, "\177ELF\2", 5); }

static CUresult read_fat(const uint8_t *data, struct image **out) {
    struct fat_header header;
    memcpy(&header, data, sizeof header);
    CUresult status = CUDA_ERROR_NO_BINARY_FOR_GPU;
    CUdevice device = 0;
    struct context *context;
    if (!context_current(&context)) device = context->device;
    /* Machine code for this device is better than text that must be compiled. */
    for (int kind = FAT_ELF; kind >= FAT_PTX; kind--) {
        for (const uint8_t *at = data + header.header_size, *end = at + header.size; at < end;) {
            struct fat_entry entry;
            memcpy(&entry, at, sizeof entry);
            const uint8_t *bytes = at + entry.header_size;
            at = bytes + entry.size;
            if (entry.kind != kind || entry.flags & FAT_COMPRESSED) continue;
            struct image *image;
            if (read_one(bytes, (size_t)entry.size, kind == FAT_PTX, &image)) continue;
            status = image_serves(image, device);
            if (!status) {
                *out = image;
                return CUDA_SUCCESS;
            }
            image_release(image);
        }
    }
    return status;
}

CUresult image_read(const void *data, struct image **out) {
    uint32_t magic;
    REQUIRE(data, CUDA_ERROR_INVALID_VALUE);
    const uint8_t *bytes = data;
    for (int i = 0; i < 4; i++) /* text may be shorter than the four bytes of a magic number */
        if (!bytes[i]) return CUDA_ERROR_INVALID_IMAGE;
    memcpy(&magic, data, sizeof magic);
    if (magic == WRAPPER_MAGIC) {
        struct wrapper wrapper;
        memcpy(&wrapper, data, sizeof wrapper);
        data = bytes = wrapper.data;
        memcpy(&magic, data, sizeof magic);
    }
    if (magic == FAT_MAGIC) return read_fat(bytes, out);
    if (is_elf(bytes)) {
        size_t size = elf_size(bytes);
        REQUIRE(size > 64, CUDA_ERROR_INVALID_IMAGE);
        return read_one(bytes, size, false, out);
    }
    for (const uint8_t *at = bytes; *at; at++) /* text: no other bytes than those of text */
        if (*at < 9 || *at == 127) return CUDA_ERROR_INVALID_IMAGE;
    REQUIRE(strstr(data, ".version") || strstr(data, ".target"), CUDA_ERROR_INVALID_IMAGE);
    return read_one(bytes, strlen(data), true, out);
}

/* Machine code runs on its own major architecture and later minor ones; PTX on everything that is not older. */
CUresult image_serves(const struct image *image, CUdevice ordinal) {
    const int *attribute = devices[ordinal].attribute;
    int major = attribute[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR];
    int arch = major * 10 + attribute[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR];
    if (image->ptx && image->ptx_version > (driver_version() / 1000 - 4) * 10 + driver_version() % 1000 / 10)
        return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    bool fits = image->exact               ? image->arch == arch
                : image->ptx && !image->family ? image->arch <= arch
                                           : image->arch / 10 == major && image->arch <= arch;
    if (fits) return CUDA_SUCCESS;
    return image->ptx ? CUDA_ERROR_INVALID_PTX : CUDA_ERROR_NO_BINARY_FOR_GPU;
}
