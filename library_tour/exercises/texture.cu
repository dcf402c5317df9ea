// Blur an image: each pixel becomes the mean of 3 x 3 texels with the weights 1 2 1, 2 4 2, 1 2 1, divided by 16. The
// texture object uses linear filtering, and repeats the edge texels outside the image (clamp).
//
// The result is right, but each pixel takes nine fetches at the centres of texels, where filtering has no effect.

extern "C" __global__ void blur(cudaTextureObject_t image, float* out, int width, int height)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= width || row >= height)
        return;
    float sum = 0.0f;
    for (int down = -1; down <= 1; down++)
        for (int across = -1; across <= 1; across++) {
            float weight = (2 - abs(across)) * (2 - abs(down));
            sum += weight * tex2D<float>(image, column + across + 0.5f, row + down + 0.5f);
        }
    out[row * width + column] = sum / 16.0f;
}
