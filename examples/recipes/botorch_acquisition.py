"""Gradient Information as an analytic acquisition function of BoTorch, on a model of BoTorch's.

The formula is that of `gibo.GradientInformation`: with c(x) the covariance of the gradient at t and the value at x,
given the data, and v(x) the variance of an observation at x, the trace of the gradient's covariance falls by
|c(x)|² / v(x). Here the derivatives at t come from autograd through the posterior covariance, so any kernel of GPyTorch
will do.

pip install botorch; python examples/recipes/botorch_acquisition.py
"""

import os

import numpy as np
import torch
from botorch.acquisition.analytic import AnalyticAcquisitionFunction
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from botorch.utils.transforms import t_batch_mode_transform
from gpytorch.kernels import RBFKernel, ScaleKernel

import gibo

torch.set_default_dtype(torch.float64)


class GradientInformation(AnalyticAcquisitionFunction):
    """How much a value at x would lower the trace of the covariance of the gradient at t."""

    def __init__(self, model, at):
        super().__init__(model=model)
        self.at = at

    @t_batch_mode_transform(expected_q=1)
    @torch.enable_grad()  # also where BoTorch asks for values alone
    def forward(self, X):
        at = self.at.expand(X.shape[0], 1, -1).clone().requires_grad_(True)  # a t of its own for each x
        covariance = self.model.posterior(torch.cat([at, X], dim=1)).mvn.covariance_matrix  # (b, 2, 2)
        # d/dt of cov(J(t), J(x)); the graph is kept, for the optimiser needs d/dx of it.
        (c,) = torch.autograd.grad(covariance[:, 0, 1].sum(), at, create_graph=True)
        return c.square().sum((-2, -1)) / (covariance[:, 1, 1] + self.model.likelihood.noise)


torch.manual_seed(0)
d, n, noise, lengthscale = 4, 6, 1e-3, 0.3
t = torch.full((d,), 0.4)
X = t + 0.1 * torch.randn(n, d)
y = -(X - 0.5).square().sum(-1, keepdim=True)
model = SingleTaskGP(X, y, covar_module=ScaleKernel(RBFKernel()), outcome_transform=None)
model.covar_module.outputscale = 1.0
model.covar_module.base_kernel.lengthscale = lengthscale
model.likelihood.noise = noise
acquisition = GradientInformation(model, at=t)

# The same number as gibo's closed form.
gp = gibo.GaussianProcess(gibo.SquaredExponential(lengthscale=lengthscale), noise=noise).condition(
    X.numpy(), y[:, 0].numpy()
)
ours = gibo.GradientInformation(gp, at=t.numpy())
points = t + 0.2 * torch.randn(5, d)
difference = np.abs(acquisition(points[:, None, :]).detach().numpy() - ours(points.numpy())).max()
print(f"largest difference to gibo: {difference:.1e}")
assert difference < 1e-6

quick = bool(os.environ.get("GIBO_EXAMPLE_QUICK"))
box = torch.stack([t - lengthscale, t + lengthscale])
query, value = optimize_acqf(acquisition, box, q=1, num_restarts=2 if quick else 5, raw_samples=16 if quick else 64)
print("next query", query[0].numpy().round(3), "gradient information", round(float(value), 4))
