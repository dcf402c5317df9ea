/* Start Python at the first call of a CUDA function, or join the Python that runs in this process already.
 *
 * Every function of a stand-in takes its implementation from a table, which Python fills once. This file is part of
 * libcuda.so.1; the other stand-ins call cudart_py_function of that library.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
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
    int (*add_pending_call)(int (*)(void *), void *);
    void (*set_error)(void *);
    void **keyboard_interrupt;
} python;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int embedded; /* this file has started Python */
static int started;  /* Python runs, or has run */
static __thread int attached;
static __thread int filling;
static __thread int calls; /* in progress that return a status */
static __thread int interrupted;

/* The kinds of functions. All but the first return a status. RELEASE ends the life of an object, or chooses a context
 * for that; GET_CURRENT is cuCtxGetCurrent. */
enum kind { OTHER, CALL, RELEASE, GET_CURRENT };

/* What takes the place of a function. The statuses have the same numbers in the driver and in the runtime. */
static int success(void) { return 0; }
static int no_context(void **context) {
    *context = NULL;
    return 0;
}
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
    python.add_pending_call = (int (*)(int (*)(void *), void *))dlsym(handle, "Py_AddPendingCall");
    python.set_error = (void (*)(void *))dlsym(handle, "PyErr_SetNone");
    python.keyboard_interrupt = dlsym(handle, "PyExc_KeyboardInterrupt");
    return python.is_initialized && python.is_finalizing && python.decode && python.set_program_name && python.initialize && python.ensure && python.release && python.save && python.run &&
           python.add_pending_call && python.set_error && python.keyboard_interrupt;
}

/* Keep the thread's state in Python from call to call, since it holds the thread's current context. */
static void attach(void) {
    if (embedded && !attached) {
        python.ensure();
        python.save();
        attached = 1;
    }
}

/* Start Python, and leave the handling of signals to the program. */
static void start(void) {
    struct sigaction interrupt;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    sigaction(SIGINT, NULL, &interrupt);
    /* Python finds the packages of a virtual environment by the path of its interpreter. */
    python.set_program_name(python.decode(PYTHON_PROGRAM, NULL));
    python.initialize(0); /* without signal handlers, but the import of this module installs one for interrupts */
    python.run("import _signal\n_signal.signal(_signal.SIGINT, _signal.SIG_DFL)\n");
    sigaction(SIGINT, &interrupt, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static int fill(struct library *library) {
    char code[256];
    int state, failed;
    if (!python.run && !find_python()) return 0;
    if (!python.is_initialized()) {
        embedded = attached = 1;
        start();
        python.save();
    }
    __atomic_store_n(&started, 1, __ATOMIC_RELEASE);
    attach();
    snprintf(code, sizeof code, "import cudart_py.standins.process as process\nprocess.fill('%s', %zu, %d)\n",
             library->name, (size_t)library->functions, embedded);
    state = python.ensure();
    failed = python.run(code);
    python.release(state);
    return !failed;
}

/* Objects of a Python program, and of the libraries that it has loaded, may be destroyed after Python itself. */
static int has_ended(void) {
    return __atomic_load_n(&started, __ATOMIC_ACQUIRE) && (!python.is_initialized() || python.is_finalizing());
}

/* Return the implementation of the function with an index. */
void *cudart_py_function(struct library *library, size_t index, int kind) {
    calls += kind != OTHER;
    if (has_ended()) {
        /* The process is about to end, so nothing is left to be released. */
        static void *const answers[] = {(void *)nothing, (void *)deinitialized, (void *)success, (void *)no_context};
        return answers[kind];
    }
    if (!__atomic_load_n(&library->filled, __ATOMIC_ACQUIRE)) {
        /* Python may load a library with a static runtime, such as cuRAND, which announces its kernels to the stand-in
         * of the runtime if that has come first. Nothing launches them. */
        if (filling) return kind ? (void *)not_initialized : (void *)nothing;
        pthread_mutex_lock(&lock);
        filling = 1;
        if (!library->filled) __atomic_store_n(&library->filled, fill(library) ? 1 : -1, __ATOMIC_RELEASE);
        filling = 0;
        pthread_mutex_unlock(&lock);
    }
    if (library->filled < 0) return kind ? (void *)not_initialized : (void *)nothing;
    attach();
    return library->functions[index];
}

/* Python calls this in its main thread, between two instructions. */
static int raise_interrupt(void *unused) {
    if (!interrupted || calls) return 0; /* an exception could not leave the call, which asks again at its end */
    interrupted = 0;
    python.set_error(*python.keyboard_interrupt);
    return -1;
}

/* End a call. Its status is the complement of a status if the call has raised KeyboardInterrupt in Python, which no call
 * from C can let out. Then Python raises it again where the program's own code next continues. */
int cudart_py_status(int status) {
    calls--;
    if (status < 0) {
        interrupted = 1;
        status = ~status;
    }
    if (interrupted && !calls) python.add_pending_call(raise_interrupt, NULL);
    return status;
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

/* Say why there is no profile: the process that `cudart-py run --profile` has become has called no function of CUDA. */
static void explain_missing_profile(void) {
    const char *process = getenv("CUDART_PY_RUN_PROCESS");
    if (started || !process || atoi(process) != getpid()) return;
    fprintf(stderr, "cudart-py: the program itself has called no function of CUDA's libraries, so it has no profile "
                    "(`cudart-py profile` profiles programs that import cudart_py)\n");
}

/* Report, after the program's own destructors. Python is not finalized: the libraries that it has loaded may be gone. */
__attribute__((destructor)) static void finish(void) {
    int state;
    explain_missing_profile();
    if (!embedded) return;
    state = python.ensure();
    python.run("import cudart_py.standins.process as process\nprocess.finish()\n");
    python.release(state);
}
