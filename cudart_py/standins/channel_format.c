/* The only function of the runtime that returns a structure, which Python's callbacks cannot. */
struct channel_format { int x, y, z, w, kind; };

struct channel_format cudaCreateChannelDesc(int x, int y, int z, int w, int kind) {
    struct channel_format result = {x, y, z, w, kind};
    return result;
}
