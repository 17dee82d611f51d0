"""One detached process per job."""
