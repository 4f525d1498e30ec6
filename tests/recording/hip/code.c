/* Code objects: an ELF file of AMD's, whose note says for which target it is and what arguments each kernel has. */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

#define MACHINE_AMDGPU 224
#define NOTE_METADATA 32

static uint32_t number(struct message *message) {
    struct item item = message_next(message);
    return item.kind == MESSAGE_NUMBER ? (uint32_t)item.number : 0;
}

static void read_argument(struct message *message, struct argument *argument) {
    struct item map = message_next(message);
    for (uint64_t i = 0; map.kind == MESSAGE_MAP && i < map.number; i++) {
        struct item key = message_next(message);
        if (key.kind == MESSAGE_BROKEN) return;
        if (item_is(key, ".offset")) argument->offset = number(message);
        else if (item_is(key, ".size")) argument->size = number(message);
        else if (item_is(key, ".value_kind")) {
            char kind[32];
            item_copy(message_next(message), kind, sizeof kind);
            argument->hidden = !strncmp(kind, "hidden_", 7);
            argument->pointer = !strcmp(kind, "global_buffer") || !strcmp(kind, "dynamic_shared_pointer");
        } else message_skip(message);
    }
}

static void *room(uint64_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (!memory) abort();
    return memory;
}

static bool read_arguments(struct message *message, struct kernel *kernel) {
    struct item array = message_next(message);
    REQUIRE(array.kind == MESSAGE_ARRAY && array.number < 4096, false);
    kernel->arguments = room(array.number, sizeof *kernel->arguments);
    kernel->argument_count = (uint32_t)array.number;
    for (uint32_t i = 0; i < kernel->argument_count; i++) {
        struct argument *argument = &kernel->arguments[i];
        read_argument(message, argument);
        if (argument->hidden) continue;
        kernel->explicit_count++;
        if (argument->offset + argument->size > kernel->explicit_bytes)
            kernel->explicit_bytes = argument->offset + argument->size;
    }
    return kernel->explicit_bytes < 1u << 20;
}

static bool read_kernel(struct message *message, struct kernel *kernel) {
    struct item map = message_next(message);
    REQUIRE(map.kind == MESSAGE_MAP, false);
    kernel->max_block = 1024;
    for (uint64_t i = 0; i < map.number; i++) {
        struct item key = message_next(message);
        REQUIRE(key.kind != MESSAGE_BROKEN, false);
        if (item_is(key, ".name")) item_copy(message_next(message), kernel->name, sizeof kernel->name);
        else if (item_is(key, ".kernarg_segment_size")) kernel->kernarg_size = number(message);
        else if (item_is(key, ".group_segment_fixed_size")) kernel->group_size = number(message);
        else if (item_is(key, ".private_segment_fixed_size")) kernel->private_size = number(message);
        else if (item_is(key, ".vgpr_count")) kernel->vector_registers = number(message);
        else if (item_is(key, ".wavefront_size")) kernel->wave_size = number(message);
        else if (item_is(key, ".max_flat_workgroup_size")) kernel->max_block = number(message);
        else if (item_is(key, ".args")) REQUIRE(read_arguments(message, kernel), false);
        else message_skip(message);
    }
    return kernel->name[0] != 0;
}

static bool read_metadata(struct message *message, struct code *code) {
    struct item map = message_next(message);
    REQUIRE(map.kind == MESSAGE_MAP, false);
    for (uint64_t i = 0; i < map.number; i++) {
        struct item key = message_next(message);
        REQUIRE(key.kind != MESSAGE_BROKEN, false);
        if (item_is(key, "amdhsa.target")) item_copy(message_next(message), code->target, sizeof code->target);
        else if (item_is(key, "amdhsa.kernels")) {
            struct item array = message_next(message);
            REQUIRE(array.kind == MESSAGE_ARRAY && array.number < 65536, false);
            code->kernels = room(array.number, sizeof *code->kernels);
            while (code->kernel_count < array.number)
                REQUIRE(read_kernel(message, &code->kernels[code->kernel_count++]), false);
        } else message_skip(message);
    }
    return !message->broken;
}

static bool read_note(const uint8_t *at, const uint8_t *end, struct code *code) {
    while (end - at >= 12) {
        uint32_t head[3]; /* the bytes of the name and of the content, and the type */
        memcpy(head, at, sizeof head);
        const uint8_t *name = at + 12;
        uint64_t name_bytes = (head[0] + (uint64_t)3) & ~(uint64_t)3, bytes = (head[1] + (uint64_t)3) & ~(uint64_t)3;
        if (name_bytes + head[1] > (uint64_t)(end - name)) return false;
        struct message message = {name + name_bytes, name + name_bytes + head[1], false};
        if (head[2] == NOTE_METADATA && head[0] == 7 && !memcmp(name, "AMDGPU", 7)) return read_metadata(&message, code);
        if (name_bytes + bytes > (uint64_t)(end - name)) return false;
        at = name + name_bytes + bytes;
    }
    return false;
}

static bool read_header(const uint8_t *image, Elf64_Ehdr *header) {
    /* The first bytes before the rest: garbage may be shorter than a header. */
    if (memcmp(image, ELFMAG, SELFMAG)) return false;
    memcpy(header, image, sizeof *header);
    return header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_machine == MACHINE_AMDGPU;
}

bool code_read(const uint8_t *image, struct code *code) {
    Elf64_Ehdr header;
    memset(code, 0, sizeof *code);
    REQUIRE(read_header(image, &header), false);
    for (unsigned i = 0; i < header.e_phnum; i++) {
        Elf64_Phdr segment;
        memcpy(&segment, image + header.e_phoff + i * (size_t)header.e_phentsize, sizeof segment);
        if (segment.p_type != PT_NOTE) continue;
        const uint8_t *at = image + segment.p_offset;
        if (read_note(at, at + segment.p_filesz, code)) return true;
        code_clear(code);
    }
    return false;
}

void code_clear(struct code *code) {
    for (uint32_t i = 0; i < code->kernel_count; i++) free(code->kernels[i].arguments);
    free(code->kernels);
    memset(code, 0, sizeof *code);
}

bool code_variable(const uint8_t *image, const char *name, uint64_t *size) {
    Elf64_Ehdr header;
    REQUIRE(read_header(image, &header), false);
    for (unsigned i = 0; i < header.e_shnum; i++) {
        Elf64_Shdr section, names;
        memcpy(&section, image + header.e_shoff + i * (size_t)header.e_shentsize, sizeof section);
        if (section.sh_type != SHT_DYNSYM) continue;
        memcpy(&names, image + header.e_shoff + section.sh_link * (size_t)header.e_shentsize, sizeof names);
        for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= section.sh_size; at += sizeof(Elf64_Sym)) {
            Elf64_Sym symbol;
            memcpy(&symbol, image + section.sh_offset + at, sizeof symbol);
            if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_shndx == SHN_UNDEF) continue;
            if (strcmp((const char *)image + names.sh_offset + symbol.st_name, name)) continue;
            *size = symbol.st_size;
            return true;
        }
    }
    return false;
}

/*
 * "amdgcn-amd-amdhsa--gfx90a:xnack-" runs on "gfx90a:sramecc+:xnack-": the processor is the same, and so is each feature
 * that the code names. A feature that it does not name may be on or off.
 */
bool code_matches(const char *target, const char *arch) {
    const char *processor = NULL;
    for (const char *at = target; (at = strstr(at, "gfx")); at++) processor = at;
    if (!processor) return false;
    size_t length = strcspn(processor, ":");
    if (length != strcspn(arch, ":") || strncmp(processor, arch, length)) return false;
    for (const char *feature = processor + length; *feature == ':';) {
        size_t bytes = 1 + strcspn(feature + 1, ":");
        const char *found = arch;
        while ((found = strchr(found, ':')) && (strncmp(found, feature, bytes) || (found[bytes] && found[bytes] != ':')))
            found++;
        if (!found) return false;
        feature += bytes;
    }
    return true;
}
