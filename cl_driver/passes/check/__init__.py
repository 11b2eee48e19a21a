"""The check mode: what is put into kernels so that they are looked at while they run."""
