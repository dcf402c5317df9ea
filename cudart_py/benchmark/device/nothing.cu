// A kernel that does nothing, to see what its launch takes.

extern "C" __global__ void nothing()
{
}
