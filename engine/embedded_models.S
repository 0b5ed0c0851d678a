// The built-in models as read-only data. CMake gives OCTAVO_TINY_MODEL, a quoted path, and makes this depend on the files.
// 64-byte alignment so that tensor data could be used in place.
        .section .rodata
        .balign 64
        .global octavo_model_tiny_begin
        .global octavo_model_tiny_end
        .hidden octavo_model_tiny_begin
        .hidden octavo_model_tiny_end
octavo_model_tiny_begin:
        .incbin OCTAVO_TINY_MODEL
octavo_model_tiny_end:
        .byte 0
        .section .note.GNU-stack, "", %progbits
