/* Reading a cubin: what NVIDIA's tools write into an ELF file about kernels, their parameters, and variables. */
#include <elf.h>
#include <string.h>

#include "state.h"

#define ENTRY_FLAG 0x10   /* of a symbol's st_other: the function is a kernel */
#define MANAGED_FLAG 0x04 /* the variable is managed */

/* The records of .nv.info sections: a format, an attribute, and bytes. */
enum { FORMAT_SIZED = 4 }; /* the others have two bytes of value */
enum {
    INFO_MAX_THREADS = 0x05,
    INFO_REQUIRED_THREADS = 0x10,
    INFO_FRAME_SIZE = 0x11,
    INFO_PARAMETER = 0x17,
    INFO_REGISTERS = 0x2f,
    INFO_CLUSTER = 0x3d,
    INFO_PARAMETER_LARGE = 0x45,
};

struct sections {
    struct image *image;
    const Elf64_Ehdr *header;
    const Elf64_Shdr *table;
    const char *names;
    const Elf64_Sym *symbols;
    size_t symbol_count;
    const char *symbol_names;
};

static bool inside(const struct image *image, uint64_t offset, uint64_t size) {
    return offset <= image->size && size <= image->size - offset;
}

static const char *section_name(const struct sections *elf, const Elf64_Shdr *section) {
    return elf->names + section->sh_name;
}

static const Elf64_Shdr *section_named(const struct sections *elf, const char *prefix, const char *name) {
    size_t length = strlen(prefix);
    for (int i = 0; i < elf->header->e_shnum; i++) {
        const char *candidate = section_name(elf, &elf->table[i]);
        if (!strncmp(candidate, prefix, length) && !strcmp(candidate + length, name)) return &elf->table[i];
    }
    return NULL;
}

static uint32_t word(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint16_t half(const uint8_t *at) {
    uint16_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

struct record {
    int attribute;
    uint32_t size;
    const uint8_t *value;
};

static bool next_record(const uint8_t **at, const uint8_t *end, struct record *record) {
    if (end - *at < 4) return false;
    bool sized = (*at)[0] == FORMAT_SIZED;
    record->attribute = (*at)[1];
    record->size = sized ? half(*at + 2) : 2;
    record->value = *at + (sized ? 4 : 2);
    if ((uint32_t)(end - record->value) < record->size) return false;
    *at = record->value + record->size;
    return true;
}

static void read_kernel_record(struct kernel_info *kernel, const struct record *record) {
    const uint8_t *value = record->value;
    if (record->size < 12) return;
    switch (record->attribute) {
    case INFO_PARAMETER:
        kernel_add_parameter(kernel, half(value + 4), half(value + 6), word(value + 8) >> 18);
        break;
    case INFO_PARAMETER_LARGE:
        kernel_add_parameter(kernel, half(value + 4), half(value + 6), word(value + 8));
        break;
    case INFO_MAX_THREADS:
    case INFO_REQUIRED_THREADS:
        kernel->max_threads = (int)(word(value) * word(value + 4) * word(value + 8));
        break;
    case INFO_CLUSTER:
        kernel->cluster_must_be_set = true;
        for (int i = 0; i < 3; i++) kernel->cluster[i] = word(value + 4 * i);
        break;
    default:
        break;
    }
}

static void read_records(struct sections *elf, const Elf64_Shdr *section, struct kernel_info *kernel, uint32_t symbol) {
    if (!section || !inside(elf->image, section->sh_offset, section->sh_size)) return;
    const uint8_t *at = elf->image->bytes + section->sh_offset, *end = at + section->sh_size;
    for (struct record record; next_record(&at, end, &record);) {
        if (!symbol) {
            read_kernel_record(kernel, &record);
        } else if (record.size >= 8 && word(record.value) == symbol) {
            if (record.attribute == INFO_REGISTERS) kernel->registers = (int)word(record.value + 4);
            if (record.attribute == INFO_FRAME_SIZE) kernel->local = (int)word(record.value + 4);
        }
    }
}

static void read_kernel(struct sections *elf, uint32_t number) {
    const char *name = elf->symbol_names + elf->symbols[number].st_name;
    struct kernel_info *kernel = image_add_kernel(elf->image, name, strlen(name));
    read_records(elf, section_named(elf, ".nv.info.", name), kernel, 0);
    read_records(elf, section_named(elf, ".nv.info", ""), kernel, number);
    const Elf64_Shdr *shared = section_named(elf, ".nv.shared.", name);
    if (shared) kernel->shared = (int)shared->sh_size;
    /* What the system keeps for itself in each block's shared memory is no part of the kernel's. */
    if (section_named(elf, ".nv.shared.reserved.0", "") && kernel->shared >= 1024) kernel->shared -= 1024;
    const Elf64_Shdr *constants = section_named(elf, ".nv.constant3", "");
    if (constants) kernel->constant = (int)constants->sh_size;
}

static void read_variable(struct sections *elf, const Elf64_Sym *symbol) {
    const Elf64_Shdr *section = &elf->table[symbol->st_shndx];
    const char *place = section_name(elf, section), *name = elf->symbol_names + symbol->st_name;
    bool global = !strncmp(place, ".nv.global", 10), constant = !strcmp(place, ".nv.constant3");
    if (!global && !constant) return;
    struct variable_info *variable = image_add_variable(elf->image, name, strlen(name));
    variable->size = symbol->st_size;
    variable->constant = constant;
    variable->managed = symbol->st_other & MANAGED_FLAG;
    if (section->sh_type != SHT_NOBITS && inside(elf->image, section->sh_offset + symbol->st_value, symbol->st_size))
        variable->initial = elf->image->bytes + section->sh_offset + symbol->st_value;
}

/* "sm_90a" in the notes that ptxas leaves: code that uses what only this very architecture has. */
static void read_architecture(struct sections *elf) {
    struct image *image = elf->image;
    uint32_t flags = elf->header->e_flags;
    image->arch = (int)(elf->header->e_ident[EI_ABIVERSION] >= 8 ? flags >> 8 & 0xff : flags & 0xff);
    const Elf64_Shdr *note = section_named(elf, ".note.nv.tkinfo", "");
    if (!note || !inside(image, note->sh_offset, note->sh_size)) return;
    const char *text = (const char *)image->bytes + note->sh_offset;
    for (size_t i = 0; i + 8 < note->sh_size; i++) {
        if (strncmp(text + i, "sm_", 3)) continue;
        size_t end = i + 3;
        while (end < note->sh_size && text[end] >= '0' && text[end] <= '9') end++;
        image->exact = text[end] == 'a';
        image->family = text[end] == 'f';
    }
}

CUresult elf_read(struct image *image) {
    struct sections elf = {.image = image, .header = (const Elf64_Ehdr *)image->bytes};
    const Elf64_Ehdr *header = elf.header;
    REQUIRE(image->size >= sizeof *header && header->e_machine == EM_CUDA, CUDA_ERROR_INVALID_IMAGE);
    REQUIRE(header->e_shentsize == sizeof(Elf64_Shdr) && header->e_shstrndx < header->e_shnum &&
                inside(image, header->e_shoff, header->e_shnum * sizeof(Elf64_Shdr)),
            CUDA_ERROR_INVALID_IMAGE);
    elf.table = (const Elf64_Shdr *)(image->bytes + header->e_shoff);
    elf.names = (const char *)image->bytes + elf.table[header->e_shstrndx].sh_offset;
    for (int i = 0; i < header->e_shnum; i++) {
        const Elf64_Shdr *section = &elf.table[i];
        REQUIRE(section->sh_type == SHT_NOBITS || inside(image, section->sh_offset, section->sh_size),
                CUDA_ERROR_INVALID_IMAGE);
        if (section->sh_type != SHT_SYMTAB) continue;
        REQUIRE(section->sh_link < header->e_shnum, CUDA_ERROR_INVALID_IMAGE);
        elf.symbols = (const Elf64_Sym *)(image->bytes + section->sh_offset);
        elf.symbol_count = section->sh_size / sizeof(Elf64_Sym);
        elf.symbol_names = (const char *)image->bytes + elf.table[section->sh_link].sh_offset;
    }
    read_architecture(&elf);
    for (uint32_t i = 1; i < elf.symbol_count; i++) {
        const Elf64_Sym *symbol = &elf.symbols[i];
        if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= header->e_shnum) continue;
        if (ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_other & ENTRY_FLAG) read_kernel(&elf, i);
        if (ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT) read_variable(&elf, symbol);
    }
    return CUDA_SUCCESS;
}
