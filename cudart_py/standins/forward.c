/* Functions of a stand-in that call those of the library itself, which is loaded at the first call. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *real_function(const char *name) {
    static void *library;
    void *found;
    if (!library) library = dlopen(REAL_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    found = library ? dlsym(library, name) : NULL;
    if (!found) {
        fprintf(stderr, "cudart-py: %s\n", dlerror());
        abort();
    }
    return found;
}

/* The size of the PTX that takes the place of machine code. A program without PTX, such as one of link-time code, has
   none, but the size of its PTX includes the final zero. */
static int machine_code_size(void *program, size_t *size) {
    int status = ((int (*)(void *, size_t *))real_function("nvrtcGetPTXSize"))(program, size);
    if (!status && *size == 1) *size = 0;
    return status;
}
