"""cuSPARSE in software: descriptors, products, results that are sparse, solvers and conversions."""
