"""Work-groups: regions between barriers, groups held whole, rows that end early."""
