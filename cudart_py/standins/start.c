/* Start Python at the first call of a CUDA function, or join the Python that runs in this process already.
 *
 * Every function of a stand-in takes its implementation from a table, which Python fills once. This file is part of
 * libcuda.so.1; the other stand-ins call cudart_py_function of that library.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

struct library {
    const char *name; /* as cudart_py.standins.process.fill knows it */
    void **functions;
    int filled; /* 1, or -1 if that failed */
};

static struct {
    int (*is_initialized)(void);
    int (*is_finalizing)(void);
    wchar_t *(*decode)(const char *, size_t *);
    void (*set_program_name)(const wchar_t *);
    void (*initialize)(int);
    int (*ensure)(void);
    void (*release)(int);
    void *(*save)(void);
    int (*run)(const char *);
} python;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int embedded; /* this file has started Python */
static __thread int attached;
static __thread int filling;

/* What takes the place of a function. The statuses have the same numbers in the driver and in the runtime. */
static int not_initialized(void) { return 3; }
static int deinitialized(void) { return 4; }
static void *nothing(void) { return NULL; } /* of a function that returns no status */

static int find_python(void) {
    void *handle = RTLD_DEFAULT;
    if (!dlsym(handle, "Py_IsInitialized")) {
        handle = dlopen(PYTHON_LIBRARY, RTLD_NOW | RTLD_GLOBAL);
        if (!handle) {
            fprintf(stderr, "cudart-py: Python's library cannot be loaded: %s\n", dlerror());
            return 0;
        }
    }
    python.is_initialized = (int (*)(void))dlsym(handle, "Py_IsInitialized");
    python.is_finalizing = (int (*)(void))dlsym(handle, "Py_IsFinalizing");
    if (!python.is_finalizing) /* before Python 3.13 */
        python.is_finalizing = (int (*)(void))dlsym(handle, "_Py_IsFinalizing");
    python.decode = (wchar_t * (*)(const char *, size_t *)) dlsym(handle, "Py_DecodeLocale");
    python.set_program_name = (void (*)(const wchar_t *))dlsym(handle, "Py_SetProgramName");
    python.initialize = (void (*)(int))dlsym(handle, "Py_InitializeEx");
    python.ensure = (int (*)(void))dlsym(handle, "PyGILState_Ensure");
    python.release = (void (*)(int))dlsym(handle, "PyGILState_Release");
    python.save = (void *(*)(void))dlsym(handle, "PyEval_SaveThread");
    python.run = (int (*)(const char *))dlsym(handle, "PyRun_SimpleString");
    return python.is_initialized && python.is_finalizing && python.decode && python.set_program_name && python.initialize && python.ensure && python.release && python.save && python.run;
}

/* Keep the thread's state in Python from call to call, since it holds the thread's current context. */
static void attach(void) {
    if (embedded && !attached) {
        python.ensure();
        python.save();
        attached = 1;
    }
}

static int fill(struct library *library) {
    char code[256];
    int state, failed;
    if (!python.run && !find_python()) return 0;
    if (!python.is_initialized()) {
        embedded = attached = 1;
        /* Python finds the packages of a virtual environment by the path of its interpreter. */
        python.set_program_name(python.decode(PYTHON_PROGRAM, NULL));
        python.initialize(0); /* no signal handlers: signals are the program's */
        python.save();
    }
    attach();
    snprintf(code, sizeof code, "import cudart_py.standins.process as process\nprocess.fill('%s', %zu, %d)\n",
             library->name, (size_t)library->functions, embedded);
    state = python.ensure();
    failed = python.run(code);
    python.release(state);
    return !failed;
}

/* Return the implementation of the function with an index. */
void *cudart_py_function(struct library *library, size_t index, int returns_status) {
    if (!__atomic_load_n(&library->filled, __ATOMIC_ACQUIRE)) {
        /* Python may load a library with a static runtime, such as cuRAND, which announces its kernels to the stand-in
         * of the runtime if that has come first. Nothing launches them. */
        if (filling) return returns_status ? (void *)not_initialized : (void *)nothing;
        pthread_mutex_lock(&lock);
        filling = 1;
        if (!library->filled) __atomic_store_n(&library->filled, fill(library) ? 1 : -1, __ATOMIC_RELEASE);
        filling = 0;
        pthread_mutex_unlock(&lock);
    }
    if (library->filled < 0) return returns_status ? (void *)not_initialized : (void *)nothing;
    /* Objects of a Python program may be destroyed after Python itself. */
    if (!python.is_initialized() || python.is_finalizing())
        return returns_status ? (void *)deinitialized : (void *)nothing;
    attach();
    return library->functions[index];
}

/* Refuse a private table. A program that contains the static runtime cannot do without; NVRTC and others can. */
int cuGetExportTable(const void **table, const void *identity) {
    Dl_info info;
    struct link_map *caller;
    if (dladdr1(__builtin_return_address(0), &info, (void **)&caller, RTLD_DL_LINKMAP) && !caller->l_name[0]) {
        fprintf(stderr, "cudart-py: this program contains the static CUDA runtime, which asks the driver for private "
                        "tables: build it with --cudart shared\n");
        exit(2);
    }
    *table = NULL;
    return 801; /* CUDA_ERROR_NOT_SUPPORTED */
}

/* Report, after the program's own destructors. Python is not finalized: the libraries that it has loaded may be gone. */
__attribute__((destructor)) static void finish(void) {
    int state;
    if (!embedded) return;
    state = python.ensure();
    python.run("import cudart_py.standins.process as process\nprocess.finish()\n");
    python.release(state);
}
