// Blur an image: each pixel becomes the mean of 3 x 3 texels with the weights 1 2 1, 2 4 2, 1 2 1, divided by 16. The
// texture object uses linear filtering, and repeats the edge texels outside the image (clamp).

extern "C" __global__ void blur(cudaTextureObject_t image, float* out, int width, int height)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= width || row >= height)
        return;
    // Four texels meet at each corner of the pixel's own texel. Corners have integer coordinates.
    float sum = 0.0f;
    for (int down = 0; down <= 1; down++)
        for (int across = 0; across <= 1; across++)
            sum += tex2D<float>(image, column + across, row + down);
    out[row * width + column] = sum / 4.0f;
}
