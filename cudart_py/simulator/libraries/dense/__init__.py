"""Parts of cuBLAS, cuBLASLt and cuSOLVER in software: epilogues, scales, batches of matrices and refinement."""
