"""Policy search: combines a task, an optimiser and the normalisation of states in one run with a journal."""
