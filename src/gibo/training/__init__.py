"""Policy search: a task, an optimiser and what is learnt of the states, put together as one run with a journal."""
