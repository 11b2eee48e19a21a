"""cl_driver/cluster, as far as it needs neither a cluster nor a device."""
