// Layouts for LAPACK's routines: transposes, triangles, diagonals and column norms of matrices, the addresses of the
// matrices of a batch, and those that are not finite. A single matrix is a batch of one.

__device__ inline float conjugated(float x) { return x; }
__device__ inline double conjugated(double x) { return x; }
__device__ inline float2 conjugated(float2 x) { return {x.x, -x.y}; }
__device__ inline double2 conjugated(double2 x) { return {x.x, -x.y}; }

__device__ inline float magnitude(float x) { return fabsf(x); }
__device__ inline double magnitude(double x) { return fabs(x); }
__device__ inline float magnitude(float2 x) { return hypotf(x.x, x.y); }
__device__ inline double magnitude(double2 x) { return hypot(x.x, x.y); }

// Element is float, double, float2 or double2. Each block of 32 x 8 threads transposes a tile of 32 x 32 elements of one
// matrix: block x is the matrix, y and z the tile. The matrices of `from` have `rows` rows that begin `leading` elements
// apart, and begin `stride` elements apart. Those of `to` are contiguous. Of each result, `part` keeps all elements (0),
// the lower triangle (1) or the upper one (2), and sets the others to zero.
template <class Element>
__global__ void transpose_matrices(const Element* from, long long leading, long long stride, Element* to, long long rows,
                                   long long columns, int part, bool conjugate)
{
    __shared__ Element tile[32][33]; // the padding column prevents bank conflicts of accesses to a column
    from += blockIdx.x * stride;
    to += blockIdx.x * rows * columns;
    long long left = blockIdx.y * 32ll;
    long long top = blockIdx.z * 32ll;
#pragma unroll // so that a thread loads its four elements before it stores the first
    for (int i = threadIdx.y; i < 32; i += 8) {
        long long row = top + i;
        long long column = left + threadIdx.x;
        // The element becomes to[column][row].
        bool kept = part == 0 || (part == 1 ? row <= column : row >= column);
        if (row < rows && column < columns && kept)
            tile[i][threadIdx.x] = from[row * leading + column];
    }
    __syncthreads();
    for (int i = threadIdx.y; i < 32; i += 8) {
        long long row = top + threadIdx.x;
        long long column = left + i;
        bool kept = part == 0 || (part == 1 ? row <= column : row >= column);
        if (row < rows && column < columns) {
            Element x = kept ? tile[threadIdx.x][i] : Element();
            to[column * rows + row] = conjugate ? conjugated(x) : x;
        }
    }
}

// Writes the address of each of `count` matrices that begin `bytes` bytes apart.
extern "C" __global__ void address_matrices(unsigned long long* addresses, unsigned long long first,
                                            unsigned long long bytes, long long count)
{
    long long matrix = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (matrix < count)
        addresses[matrix] = first + matrix * bytes;
}

// Copies the diagonal of each matrix, `count` elements of it. A thread copies one element.
template <class Element>
__global__ void take_diagonals(const Element* from, long long leading, long long stride, Element* to, long long count,
                               long long batch)
{
    long long place = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (place < batch * count)
        to[place] = from[place / count * stride + place % count * (leading + 1)];
}

// Measures each column of the upper triangles R of column-major matrices: the absolute value of its diagonal element, and
// its norm. Both are divided by the column's largest element, so that squares neither overflow nor underflow. A warp
// measures one column. A column that contains NaN has the norm NaN.
template <class Element, class Real = decltype(magnitude(Element()))>
__global__ void measure_columns(const Element* from, long long leading, long long stride, Real* diagonals, Real* norms,
                                long long columns, long long batch)
{
    constexpr unsigned ALL = 0xffffffff;
    long long place = (blockIdx.x * (long long)blockDim.x + threadIdx.x) / 32;
    if (place >= batch * columns)
        return;
    long long column = place % columns;
    from += place / columns * stride + column * leading;

    Real largest = 0;
    for (long long row = threadIdx.x % 32; row <= column; row += 32)
        largest = fmax(largest, magnitude(from[row]));
    for (int distance = 16; distance > 0; distance /= 2)
        largest = fmax(largest, __shfl_xor_sync(ALL, largest, distance));
    Real scale = largest > 0 ? largest : 1;

    Real sum = 0;
    for (long long row = threadIdx.x % 32; row <= column; row += 32) {
        Real size = magnitude(from[row]) / scale;
        sum += size * size;
    }
    for (int distance = 16; distance > 0; distance /= 2)
        sum += __shfl_xor_sync(ALL, sum, distance);
    if (threadIdx.x % 32 == 0) {
        diagonals[place] = magnitude(from[column]) / scale;
        norms[place] = sqrt(sum);
    }
}

// Marks the matrices that contain NaN or infinity, in `marks`. Each has `size` real numbers, and a thread reads one.
template <class Real>
__global__ void mark_not_finite(const Real* from, long long size, int* marks, long long batch)
{
    long long place = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (place < batch * size && !isfinite(from[place]))
        marks[place / size] = 1;
}
