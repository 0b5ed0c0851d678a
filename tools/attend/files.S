// The files that the page is made of, as read-only data. CMake makes this depend on them and says where they are.
        .section .rodata

#define EMBED(name, file)                   \
        .global octavo_page_##name##_begin; \
        .global octavo_page_##name##_end;   \
        .hidden octavo_page_##name##_begin; \
        .hidden octavo_page_##name##_end;   \
        octavo_page_##name##_begin:         \
        .incbin file;                       \
        octavo_page_##name##_end:           \
        .byte 0

EMBED(html, "page.html")
EMBED(style, "page.css")
EMBED(text, "text.js")
EMBED(soft_lookup, "soft_lookup.js")
EMBED(triangle, "triangle.js")
EMBED(heads, "heads.js")
EMBED(main, "main.js")
        .section .note.GNU-stack, "", %progbits
