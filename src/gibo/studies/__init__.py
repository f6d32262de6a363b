"""The paper's studies, and the problems they are made of."""
