// A kernel that does nothing, to measure the time that a launch takes.

extern "C" __global__ void nothing()
{
}
