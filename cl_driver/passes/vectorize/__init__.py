"""Several work-items per vector: if-conversion of divergent control flow, coarsening, guards."""
