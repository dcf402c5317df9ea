// Rotate an image: each output pixel reads the source texel at its rotated position. Adjacent pixels in a row of the
// output lie along a slanted line of the source, so texels that are close in two dimensions are read together.
//
//   rotate_plain      loads the nearest texel, or uses 0 outside the source
//   rotate_ldg        rotate_plain with __ldg, which once read through a texture cache. That cache has been part
//                     of L1 for many years, and all loads go through it
//   rotate_texture    reads through a texture object, which handles positions outside the image
//   rotate_shared     the block copies the part of the source that it needs to shared memory, row by row
//   filter_plain      weights the four nearest texels by their distances: four loads, four tests, three interpolations
//   filter_texture    the same mean with one fetch from the texture unit, whose weights have 8 bits
//
// The launch determines the pixels of a warp. In blocks of 32 x 8 threads, a warp has 32 adjacent pixels of a row. In
// blocks of 8 x 32 threads, it has 8 x 4 pixels, which lie in fewer sectors of a rotated source. Each thread computes
// PIXELS pixels, one block height apart, so that several loads are in flight.

constexpr int PIXELS = 4;

// Positions are fixed-point numbers, so that all variants read exactly the same texels.
constexpr int POSITION_BITS = 14;
constexpr int WEIGHT_BITS = 8;

// In units of 2^-14: pixel (column, row) reads the position (cosine * column - sine * row + x, sine * column + cosine *
// row + y) of the source, whose texel (0, 0) extends from 0 to 1.
struct Rotation {
    int cosine, sine, x, y;

    __device__ int x_of(int column, int row) const { return cosine * column - sine * row + x; }
    __device__ int y_of(int column, int row) const { return sine * column + cosine * row + y; }
};

// The columns and rows of both images, and the distance from one row to the next in elements.
struct Shape {
    int width, height, pitch;

    __device__ bool contains(int column, int row) const
    {
        return 0 <= column && column < width && 0 <= row && row < height;
    }
    __device__ size_t index(int column, int row) const { return size_t(row) * pitch + column; }
};

// Compute a thread's pixels with `sample`, which returns the value at a position, and then store them all.
template <class Sample>
__device__ void for_each_pixel(float* out, Shape shape, Rotation rotation, Sample sample)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int first = blockIdx.y * blockDim.y * PIXELS + threadIdx.y;
    float value[PIXELS];
#pragma unroll
    for (int k = 0; k < PIXELS; k++) {
        int row = first + k * blockDim.y;
        value[k] = sample(rotation.x_of(column, row), rotation.y_of(column, row));
    }
#pragma unroll
    for (int k = 0; k < PIXELS; k++) {
        int row = first + k * blockDim.y;
        if (shape.contains(column, row))
            out[shape.index(column, row)] = value[k];
    }
}

extern "C" __global__ void rotate_plain(const float* in, float* out, Shape shape, Rotation rotation)
{
    for_each_pixel(out, shape, rotation, [=](int x, int y) {
        int column = x >> POSITION_BITS, row = y >> POSITION_BITS;
        return shape.contains(column, row) ? in[shape.index(column, row)] : 0.0f;
    });
}

extern "C" __global__ void rotate_ldg(const float* in, float* out, Shape shape, Rotation rotation)
{
    for_each_pixel(out, shape, rotation, [=](int x, int y) {
        int column = x >> POSITION_BITS, row = y >> POSITION_BITS;
        return shape.contains(column, row) ? __ldg(in + shape.index(column, row)) : 0.0f;
    });
}

extern "C" __global__ void rotate_texture(cudaTextureObject_t in, float* out, Shape shape, Rotation rotation)
{
    for_each_pixel(out, shape, rotation, [=](int x, int y) {
        // The centre of a texel is halfway between integers.
        return tex2D<float>(in, (x >> POSITION_BITS) + 0.5f, (y >> POSITION_BITS) + 0.5f);
    });
}

// For blocks of 32 x 8 threads: the square of pixels that a block computes is at most 32 * sqrt(2) wide when rotated.
constexpr int SQUARE = 32;
constexpr int BOX = 48;

extern "C" __global__ void rotate_shared(const float* in, float* out, Shape shape, Rotation rotation)
{
    __shared__ float box[BOX][BOX + 1];  // padded, so that the elements of a column lie in different banks

    // The signs of the sine and cosine determine which corners become leftmost and topmost.
    int first_column = blockIdx.x * SQUARE, last_column = first_column + SQUARE - 1;
    int first_row = blockIdx.y * SQUARE, last_row = first_row + SQUARE - 1;
    int left = rotation.x_of(rotation.cosine < 0 ? last_column : first_column,
                             rotation.sine < 0 ? first_row : last_row) >> POSITION_BITS;
    int top = rotation.y_of(rotation.sine < 0 ? last_column : first_column,
                            rotation.cosine < 0 ? last_row : first_row) >> POSITION_BITS;

    for (int y = threadIdx.y; y < BOX; y += blockDim.y)
        for (int x = threadIdx.x; x < BOX; x += blockDim.x)
            box[y][x] = shape.contains(left + x, top + y) ? in[shape.index(left + x, top + y)] : 0.0f;
    __syncthreads();
    for_each_pixel(out, shape, rotation,
                   [&](int x, int y) { return box[(y >> POSITION_BITS) - top][(x >> POSITION_BITS) - left]; });
}

// Round a position down to the precision of the weights.
__device__ int rounded(int position)
{
    return position >> (POSITION_BITS - WEIGHT_BITS);
}

extern "C" __global__ void filter_plain(const float* in, float* out, Shape shape, Rotation rotation)
{
    constexpr int unit = 1 << WEIGHT_BITS;
    auto texel = [=](int column, int row) {
        return shape.contains(column, row) ? in[shape.index(column, row)] : 0.0f;
    };
    for_each_pixel(out, shape, rotation, [=](int x, int y) {
        // Weights are measured from texel centres.
        int across = rounded(x) - unit / 2, down = rounded(y) - unit / 2;
        int column = across >> WEIGHT_BITS, row = down >> WEIGHT_BITS;
        float above_left = texel(column, row), above_right = texel(column + 1, row);
        float below_left = texel(column, row + 1), below_right = texel(column + 1, row + 1);
        float to_right = (across & (unit - 1)) * (1.0f / unit), to_below = (down & (unit - 1)) * (1.0f / unit);
        float above = above_left + to_right * (above_right - above_left);
        float below = below_left + to_right * (below_right - below_left);
        return above + to_below * (below - above);
    });
}

extern "C" __global__ void filter_texture(cudaTextureObject_t in, float* out, Shape shape, Rotation rotation)
{
    constexpr float unit = 1 << WEIGHT_BITS;
    for_each_pixel(out, shape, rotation,
                   [=](int x, int y) { return tex2D<float>(in, rounded(x) / unit, rounded(y) / unit); });
}
