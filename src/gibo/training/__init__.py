"""Policy search: a task, an optimiser and the normalisation of states, put together as one run with a journal."""
