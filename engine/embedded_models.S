// The built-in models as read-only data; model.cc names them. CMake makes this depend on the files and says where they are.
// 64-byte alignment so that tensor data could be used in place.
        .section .rodata

#define EMBED(name, file)                    \
        .balign 64;                          \
        .global octavo_model_##name##_begin; \
        .global octavo_model_##name##_end;   \
        .hidden octavo_model_##name##_begin; \
        .hidden octavo_model_##name##_end;   \
        octavo_model_##name##_begin:         \
        .incbin file;                        \
        octavo_model_##name##_end:           \
        .byte 0

EMBED(tiny, "tiny.safetensors")
EMBED(small, "small.safetensors")
        .section .note.GNU-stack, "", %progbits
