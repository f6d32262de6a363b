"""gibo inside other libraries; each module here is imported only by those who ask for it.

::

    from gibo.integrations.optuna import GIBOSampler        # needs the extra: pip install '.[optuna]'
    from gibo.integrations.scipy import minimize            # scipy.optimize.minimize(f, x0, method=minimize)
    from gibo.integrations.tensorboard import TensorBoard   # the extra tensorboard; callback=TensorBoard("logs")
"""
