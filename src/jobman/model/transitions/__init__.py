"""Every legal change of a job, its runs and its supervisor."""
