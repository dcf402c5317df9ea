// Smooth an image and keep its edges: a mean of the neighbours, by their distance and by how much their grey differs.
//
//   bilateral   one pixel a thread, 9 x 9 neighbours; those outside the image don't count

constexpr int RADIUS = 4;

extern "C" __global__ void bilateral(
    float* out, const unsigned char* image, int width, int height, float near, float similar)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height)
        return;
    const float own = image[y * width + x];
    float sum = 0, weights = 0;
    for (int dy = -RADIUS; dy <= RADIUS; dy++)
        for (int dx = -RADIUS; dx <= RADIUS; dx++) {
            const int other_x = x + dx, other_y = y + dy;
            if (other_x < 0 || other_y < 0 || other_x >= width || other_y >= height)
                continue;
            const float grey = image[other_y * width + other_x];
            const float weight = expf(-(dx * dx + dy * dy) * near - (grey - own) * (grey - own) * similar);
            sum += weight * grey;
            weights += weight;
        }
    out[y * width + x] = sum / weights;
}
