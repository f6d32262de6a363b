"""The paper's studies: Müller, von Rohr, Trimpe: Local policy search with Bayesian optimization, NeurIPS 2021."""
