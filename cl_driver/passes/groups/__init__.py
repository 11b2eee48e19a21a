"""Work-groups: regions between barriers, groups in lockstep, rows that end early."""
