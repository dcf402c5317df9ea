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
