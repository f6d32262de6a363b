"""Which query tells most: Gradient Information and its maximisation."""
