// Distances from one vertex of a graph, by breadth-first search. A launch takes the vertices of one distance.
//
//   expand   one vertex of the frontier a thread. The thread that reaches another vertex first, by a compare-and-swap,
//            adds it to the next frontier. Edges stand in one array, those of vertex v from starts[v] to starts[v + 1]

extern "C" __global__ void expand(
    const int* starts, const int* edges, int* distances, const int* frontier, int size, int* next, int* next_size,
    int distance)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size)
        return;
    const int vertex = frontier[i];
    for (int edge = starts[vertex]; edge < starts[vertex + 1]; edge++) {
        const int other = edges[edge];
        if (atomicCAS(&distances[other], -1, distance) == -1)
            next[atomicAdd(next_size, 1)] = other;
    }
}
