/* A reader of MessagePack, as far as the notes of code objects need it. */
#include <string.h>

#include "state.h"

static uint64_t big_endian(struct message *message, int bytes) {
    uint64_t value = 0;
    while (bytes--) {
        if (message->at == message->end) {
            message->end = message->at - 1; /* broken: nothing can be read from now on */
            return 0;
        }
        value = value << 8 | *message->at++;
    }
    return value;
}

static struct item text(struct message *message, uint64_t length) {
    struct item item = {MESSAGE_TEXT, length, (const char *)message->at};
    if (message->at > message->end || length > (uint64_t)(message->end - message->at))
        return (struct item){MESSAGE_BROKEN, 0, NULL};
    message->at += length;
    return item;
}

static struct item other(struct message *message, uint64_t bytes) {
    struct item item = text(message, bytes);
    if (item.kind == MESSAGE_TEXT) item.kind = MESSAGE_OTHER;
    return item;
}

static struct item next(struct message *message) {
    if (message->at >= message->end) return (struct item){MESSAGE_BROKEN, 0, NULL};
    uint8_t first = *message->at++;
    struct item item = {MESSAGE_NUMBER, 0, NULL};
    if (first < 0x80) item.number = first;
    else if (first < 0x90) item = (struct item){MESSAGE_MAP, first & 15, NULL};
    else if (first < 0xa0) item = (struct item){MESSAGE_ARRAY, first & 15, NULL};
    else if (first < 0xc0) item = text(message, first & 31);
    else if (first >= 0xe0) item.number = (uint64_t)(int8_t)first;
    else
        switch (first) {
        case 0xc0: item.kind = MESSAGE_NIL; break;
        case 0xc2: case 0xc3: item.number = first & 1; break;
        case 0xc4: item = other(message, big_endian(message, 1)); break;
        case 0xc5: item = other(message, big_endian(message, 2)); break;
        case 0xc6: item = other(message, big_endian(message, 4)); break;
        case 0xca: item = other(message, 4); break;
        case 0xcb: item = other(message, 8); break;
        case 0xcc: case 0xcd: case 0xce: case 0xcf: item.number = big_endian(message, 1 << (first - 0xcc)); break;
        case 0xd0: item.number = (uint64_t)(int8_t)big_endian(message, 1); break;
        case 0xd1: item.number = (uint64_t)(int16_t)big_endian(message, 2); break;
        case 0xd2: item.number = (uint64_t)(int32_t)big_endian(message, 4); break;
        case 0xd3: item.number = big_endian(message, 8); break;
        case 0xd9: item = text(message, big_endian(message, 1)); break;
        case 0xda: item = text(message, big_endian(message, 2)); break;
        case 0xdb: item = text(message, big_endian(message, 4)); break;
        case 0xdc: item = (struct item){MESSAGE_ARRAY, big_endian(message, 2), NULL}; break;
        case 0xdd: item = (struct item){MESSAGE_ARRAY, big_endian(message, 4), NULL}; break;
        case 0xde: item = (struct item){MESSAGE_MAP, big_endian(message, 2), NULL}; break;
        case 0xdf: item = (struct item){MESSAGE_MAP, big_endian(message, 4), NULL}; break;
        default: item.kind = MESSAGE_BROKEN;
        }
    if (message->end < message->at) item.kind = MESSAGE_BROKEN;
    return item;
}

struct item message_next(struct message *message) {
    struct item item = next(message);
    if (item.kind == MESSAGE_BROKEN) message->broken = true;
    return item;
}

void message_skip(struct message *message) {
    uint64_t waiting = 1; /* items, of all levels */
    while (waiting--) {
        struct item item = message_next(message);
        if (item.kind == MESSAGE_BROKEN) return;
        if (item.kind == MESSAGE_ARRAY) waiting += item.number;
        if (item.kind == MESSAGE_MAP) waiting += 2 * item.number;
    }
}

bool item_is(struct item item, const char *text) {
    return item.kind == MESSAGE_TEXT && item.number == strlen(text) && !memcmp(item.text, text, item.number);
}

void item_copy(struct item item, char *out, size_t capacity) {
    size_t length = item.kind == MESSAGE_TEXT ? item.number : 0;
    if (length >= capacity) length = capacity - 1;
    if (length) memcpy(out, item.text, length);
    out[length] = 0;
}
